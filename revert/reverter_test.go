package revert_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

func before() map[string]string { return map[string]string{"a": "1", "b": "2"} }

func outcomes(items []revert.ResourceResult) map[string]effect.Outcome {
	m := map[string]effect.Outcome{}
	for _, i := range items {
		m[i.Resource] = i.Outcome
	}
	return m
}

func TestRevertOpenTransaction(t *testing.T) {
	ctx := context.Background()
	w := &kvStore{before()}
	p := newProcess(journal.SharedMemory(), w, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 7}, write{"c", 8}))
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 9}, write{"b", nil}))
	require.NoError(t, err)

	rep, err := p.revert(ctx, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, rep.State)
	require.True(t, rep.Complete())
	require.Len(t, rep.Items, 4)
	require.Equal(t, before(), w.values)

	txn, err := revert.Load(ctx, p.journal, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, txn.State())
	open, err := p.journal.Unfinished(ctx)
	require.NoError(t, err)
	require.Empty(t, open)
}

func TestRevertCommittedTransactionTwiceEqualsOnce(t *testing.T) {
	ctx := context.Background()
	w := &kvStore{before()}
	p := newProcess(journal.SharedMemory(), w, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 7}, write{"b", nil}))
	require.NoError(t, err)
	require.NoError(t, p.commit(ctx, rec))

	rep, err := p.revert(ctx, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, rep.State)
	require.NotEmpty(t, rep.RevertTxn)
	require.Equal(t, before(), w.values)

	w.values["a"] = "later"
	again, err := p.revert(ctx, rec.Txn())
	require.NoError(t, err)
	require.Empty(t, again.Items, "a second revert has nothing to do")
	require.Equal(t, "later", w.values["a"], "and touches nothing")
	txn, err := revert.Load(ctx, p.journal, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, txn.State())
}

func TestForeignChangeIsLeftAlone(t *testing.T) {
	ctx := context.Background()
	w := &kvStore{before()}
	p := newProcess(journal.SharedMemory(), w, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 7}))
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 8}, write{"b", 9}))
	require.NoError(t, err)
	require.NoError(t, p.commit(ctx, rec))
	w.values["a"] = "theirs"

	rep, err := p.revert(ctx, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, revert.TxnRevertedPartial, rep.State)
	require.Equal(t, map[string]effect.Outcome{"a": effect.Conflict, "b": effect.Restored}, outcomes(rep.Items))
	require.Equal(t, map[string]string{"a": "theirs", "b": "2"}, w.values)
	txn, err := revert.Load(ctx, p.journal, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, revert.TxnRevertedPartial, txn.State(), "a partial revert is never shown as success")

	w.values["a"] = "8" // the other actor restored it: the rest can now be reverted
	rep, err = p.revert(ctx, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, rep.State)
	require.Equal(t, before(), w.values)
}

func TestSecondWriterAndHeldResource(t *testing.T) {
	ctx := context.Background()
	w := &kvStore{before()}
	p := newProcess(journal.SharedMemory(), w, 1)
	one, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, one, put(write{"a", 7}))
	require.NoError(t, err)
	require.NoError(t, p.commit(ctx, one))
	two, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, two, put(write{"b", 8}))
	require.NoError(t, err)

	three, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, three, put(write{"b", 9}))
	require.ErrorIs(t, err, journal.ErrClaimed)
	var held *journal.ClaimedError
	require.ErrorAs(t, err, &held)
	require.Equal(t, two.Txn(), held.Holder)

	_, err = p.call(ctx, two, put(write{"a", 8}))
	require.NoError(t, err, "a committed transaction holds nothing")
	rep, err := p.revert(ctx, one.Txn())
	require.NoError(t, err)
	require.Equal(t, effect.Conflict, rep.Items[0].Outcome)
	require.Equal(t, "8", w.values["a"])
}

func TestHeldResourceIsAConflictOfTheUndo(t *testing.T) {
	ctx := context.Background()
	w := &kvStore{before()}
	p := newProcess(journal.SharedMemory(), w, 1)
	one, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, one, put(write{"a", 7}, write{"b", 8}))
	require.NoError(t, err)
	require.NoError(t, p.commit(ctx, one))
	two, err := p.begin(ctx)
	require.NoError(t, err)
	// Claims a, but its effect has not happened yet.
	require.NoError(t, two.Write(ctx, revert.Write{Claims: []string{"a"}, Durable: true, Records: []revert.CallRecord{{Body: &record.Savepoint{Name: "x"}}}}))

	rep, err := p.revert(ctx, one.Txn())
	require.NoError(t, err)
	require.Equal(t, map[string]effect.Outcome{"a": effect.Conflict, "b": effect.Restored}, outcomes(rep.Items))
	require.Contains(t, rep.NotReverted()[0].Why, two.Txn())
}

func TestRevertToSavepoint(t *testing.T) {
	ctx := context.Background()
	w := &kvStore{before()}
	p := newProcess(journal.SharedMemory(), w, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 7}))
	require.NoError(t, err)
	require.NoError(t, rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Body: &record.Savepoint{Name: "sp"}}}}))
	_, err = p.call(ctx, rec, put(write{"a", 8}, write{"c", 1}))
	require.NoError(t, err)

	rep, err := p.reverter.RevertTo(ctx, rec.Txn(), "sp", "kim")
	require.NoError(t, err)
	require.Equal(t, revert.TxnOpen, rep.State)
	require.Equal(t, map[string]string{"a": "7", "b": "2"}, w.values)
	_, err = p.reverter.RevertTo(ctx, rec.Txn(), "none", "kim")
	require.ErrorIs(t, err, journal.ErrNotFound)

	_, err = p.revert(ctx, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, before(), w.values)
}

func TestLivingOwnerIsNotDisturbed(t *testing.T) {
	ctx := context.Background()
	open, w := journal.SharedMemory(), &kvStore{before()}
	p, q := newProcess(open, w, 1), newProcess(open, w, 2)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 7}))
	require.NoError(t, err)

	_, err = q.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.ErrorIs(t, err, revert.ErrBusy)
	found, err := q.reverter.Recover(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, found.Alive)
	require.Empty(t, found.Abandoned)

	p.endProcess(t)
	found, err = q.reverter.Recover(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{rec.Txn()}, found.Abandoned)
	require.Empty(t, found.Settled, "nothing was in flight")
	_, err = q.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before(), w.values)
}

// revertTool is a tool's own Revert that records its calls.
type revertTool struct {
	keys []string
	err  error
}

func (u *revertTool) CanRevert(context.Context, revert.Call) (bool, string) { return true, "" }

func (u *revertTool) RevertCall(_ context.Context, _ revert.Recorder, _ revert.Call, _, key string) error {
	u.keys = append(u.keys, key)
	return u.err
}

func TestEffectsOutsideHandles(t *testing.T) {
	ctx := context.Background()
	for _, tc := range []struct {
		name   string
		class  effect.Class
		undoer *revertTool
		want   effect.Outcome
	}{
		{"compensable with a way back", effect.Compensable, &revertTool{}, effect.Restored},
		{"compensable whose way back fails", effect.Compensable, &revertTool{err: errors.New("gone")}, effect.Failed},
		{"compensable without its tool", effect.Compensable, nil, effect.Failed},
		{"pivot", effect.Pivot, nil, effect.Failed},
		{"reversible that recorded nothing", effect.Reversible, nil, effect.Failed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
			if tc.undoer != nil {
				p.toolReverter = tc.undoer
			}
			rec, err := p.begin(ctx)
			require.NoError(t, err)
			_, err = p.call(ctx, rec, callSpec{class: tc.class, confinement: "trusted"})
			require.NoError(t, err)
			rep, err := p.revert(ctx, rec.Txn())
			require.NoError(t, err)
			require.Len(t, rep.Items, 1)
			require.Equal(t, tc.want, rep.Items[0].Outcome)
			require.Equal(t, tc.want == effect.Restored, rep.State == revert.TxnReverted)
			if tc.undoer != nil {
				require.Equal(t, []string{revert.RevertKey("key-" + rep.Items[0].Call)}, tc.undoer.keys)
			}
		})
	}
}

func TestUnknownFreezesOnlyWhatItMayHaveTouched(t *testing.T) {
	ctx := context.Background()
	w := &kvStore{before()}
	p := newProcess(journal.SharedMemory(), w, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 7}, write{"b", 8}))
	require.NoError(t, err)
	id := "c_unknown"
	lines := []revert.CallRecord{
		{Call: id, Body: &record.Started{Key: "k", Tool: record.ToolRef{Name: "send"}, Class: effect.Pivot, Confinement: "trusted", Input: []byte("{}"), Decision: []byte("{}")}},
		{Call: id, Body: &record.Changed{Change: effect.Change{N: 1, Scheme: "kv", Resource: "a", Kind: "write", Pre: "v:7", Post: "v:9"}}},
		{Call: id, Body: &record.Unknown{Status: "unknown", Why: "lost reply"}},
	}
	require.NoError(t, rec.Write(ctx, revert.Write{Records: lines, Durable: true}))

	rep, err := p.revert(ctx, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, revert.TxnRevertedPartial, rep.State)
	require.Equal(t, map[string]effect.Outcome{
		"tool://send": effect.Unknown, "a": effect.Unknown, "b": effect.Restored,
	}, outcomes(rep.Items))
	require.Equal(t, map[string]string{"a": "7", "b": "2"}, w.values)
}

// TestCrashAtEveryPoint kills a transaction's process at each scheduling point
// of its work and of its revert. It also kills the recovery and the revert that
// follow at each of theirs. The end is always the same.
func TestCrashAtEveryPoint(t *testing.T) {
	ctx := context.Background()
	work := func(p *process) (string, error) {
		rec, err := p.begin(ctx)
		if err != nil {
			return "", err
		}
		for _, c := range []callSpec{put(write{"a", 7}, write{"c", 8}), put(write{"a", 9}, write{"b", nil})} {
			if _, err := p.call(ctx, rec, c); err != nil {
				return rec.Txn(), err
			}
		}
		_, err = p.revert(ctx, rec.Txn())
		return rec.Txn(), err
	}
	clean := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	total := clean.points(func() { _, _ = work(clean) })
	require.Greater(t, total, 12)
	states := 0
	for first := range total {
		for second := -1; second < 12; second++ {
			states++
			open, w := journal.SharedMemory(), &kvStore{maps.Clone(before())}
			p := newProcess(open, w, 1)
			p.crashAt(first)
			id, err := work(p)
			require.ErrorIs(t, err, errProcessEnded)
			p.endProcess(t)
			if second >= 0 {
				q := newProcess(open, w, 2)
				q.crashAt(second)
				_, _ = q.reverter.Recover(ctx)
				_, _ = q.revert(ctx, id)
				q.endProcess(t)
			}
			r := newProcess(open, w, 3)
			_, err = r.reverter.Recover(ctx)
			require.NoError(t, err, "killed at point %d, then %d", first, second)
			if id != "" && exists(ctx, r.journal, id) {
				rep, err := r.revert(ctx, id)
				require.NoError(t, err, "killed at point %d, then %d", first, second)
				require.True(t, rep.Complete(), "killed at point %d, then %d: %+v", first, second, rep)
			}
			require.Equal(t, before(), w.values, "killed at point %d, then %d", first, second)
		}
	}
	t.Logf("%d crash states", states)
}

func exists(ctx context.Context, j journal.Journal, txn string) bool {
	_, err := revert.Load(ctx, j, txn)
	return !errors.Is(err, journal.ErrNotFound)
}

func after() map[string]string { return map[string]string{"a": "9", "c": "8"} }

// changed runs a transaction that turns before into after, and ends it.
func (p *process) changed(t *testing.T, ctx context.Context, commit bool) string {
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	for _, c := range []callSpec{put(write{"a", 7}, write{"c", 8}), put(write{"a", 9}, write{"b", nil})} {
		_, err := p.call(ctx, rec, c)
		require.NoError(t, err)
	}
	require.Equal(t, after(), p.store.values)
	if commit {
		require.NoError(t, p.commit(ctx, rec))
		_, err = p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	} else {
		_, err = p.reverter.Abort(ctx, rec.Txn(), revert.Options{})
	}
	require.NoError(t, err)
	require.Equal(t, before(), p.store.values)
	return rec.Txn()
}

func TestRedo(t *testing.T) {
	ctx := context.Background()
	for _, commit := range []bool{true, false} {
		p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
		id := p.changed(t, ctx, commit)
		for range 3 {
			rep, err := p.reverter.Redo(ctx, id, "kim")
			require.NoError(t, err)
			require.True(t, rep.Complete())
			require.Equal(t, after(), p.store.values)
			txn, err := revert.Load(ctx, p.journal, id)
			require.NoError(t, err)
			require.Equal(t, revert.TxnCommitted, txn.State())
			again, err := p.reverter.Redo(ctx, id, "kim")
			require.NoError(t, err)
			require.Empty(t, again.Items, "twice equals once")
			_, err = p.reverter.Revert(ctx, rep.RevertTxn, revert.Options{})
			require.ErrorIs(t, err, revert.ErrIsRevertTxn)

			back, err := p.reverter.Revert(ctx, id, revert.Options{})
			require.NoError(t, err)
			require.Equal(t, revert.TxnReverted, back.State)
			require.Equal(t, before(), p.store.values)
		}
		open, err := p.journal.Unfinished(ctx)
		require.NoError(t, err)
		require.Empty(t, open)
	}
}

func TestRedoLeavesForeignChangesAlone(t *testing.T) {
	ctx := context.Background()
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	id := p.changed(t, ctx, true)
	p.store.values["b"] = "theirs"
	rep, err := p.reverter.Redo(ctx, id, "kim")
	require.NoError(t, err)
	require.False(t, rep.Complete())
	require.Equal(t, map[string]string{"a": "9", "b": "theirs", "c": "8"}, p.store.values)
	_, err = p.reverter.Revert(ctx, id, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1", "b": "theirs"}, p.store.values)
}

// TestCrashOfRedo kills a redo at each of its scheduling points, and then the
// one that follows. Recover and redo restore everything; recover and revert
// restore nothing.
func TestCrashOfRedo(t *testing.T) {
	ctx := context.Background()
	probe := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	id := probe.changed(t, ctx, true)
	total := probe.points(func() { _, _ = probe.reverter.Redo(ctx, id, "kim") })
	require.Greater(t, total, 6)
	for first := range total {
		for second := -1; second < total; second++ {
			for _, forward := range []bool{true, false} {
				open, w := journal.SharedMemory(), &kvStore{maps.Clone(before())}
				p := newProcess(open, w, 1)
				id := p.changed(t, ctx, true)
				p.crashAt(first)
				_, err := p.reverter.Redo(ctx, id, "kim")
				require.ErrorIs(t, err, errProcessEnded)
				p.endProcess(t)
				if second >= 0 {
					q := newProcess(open, w, 2)
					q.crashAt(second)
					_, _ = q.reverter.Recover(ctx)
					_, _ = q.reverter.Redo(ctx, id, "kim")
					q.endProcess(t)
				}
				r := newProcess(open, w, 3)
				_, err = r.reverter.Recover(ctx)
				require.NoError(t, err, "%d, %d", first, second)
				want := before()
				if forward {
					want = after()
					_, err = r.reverter.Redo(ctx, id, "kim")
				} else {
					_, err = r.reverter.Revert(ctx, id, revert.Options{})
				}
				require.NoError(t, err, "%d, %d", first, second)
				require.Equal(t, want, w.values, "killed at point %d, then %d", first, second)
				left, err := r.journal.Unfinished(ctx)
				require.NoError(t, err)
				require.Empty(t, left, "killed at point %d, then %d", first, second)
			}
		}
	}
}
