package revert_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// places are the recorded folder of a session and a copy of it, with one
// journal.
type places struct {
	t              *testing.T
	open           func() journal.Journal
	recorded, copy *kvStore
	lives          uint64
	last           *process
}

func folder(path string) []record.Root {
	return []record.Root{{Name: "workspace", Path: path, Identity: json.RawMessage(`{"inode":"` + path + `"}`)}}
}

// in continues in another process, which works in the recorded folder or in the
// copy.
func (p *places) in(w *kvStore) *process {
	if p.last != nil {
		p.last.endProcess(p.t)
	}
	p.lives++
	p.last = newProcess(p.open, w, p.lives)
	p.last.reverter.Named = func(context.Context, string) ([]record.Root, error) {
		if w == p.copy {
			return folder("copy"), nil
		}
		return nil, nil
	}
	return p.last
}

// newPlaces records a transaction with one call that set a to 2 and b to 1.
func newPlaces(t *testing.T) (*places, string) {
	p := &places{t: t, open: journal.SharedMemory(), recorded: &kvStore{map[string]string{"a": "1"}}, copy: &kvStore{}}
	first := p.in(p.recorded)
	session := &record.Session{Principal: json.RawMessage(`{}`), Grant: json.RawMessage(`{}`), Roots: folder("ws")}
	require.NoError(t, revert.NewRecorder(first.journal, first.host, "s_1").Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Body: session}}, Durable: true}))
	rec, err := first.begin(t.Context())
	require.NoError(t, err)
	_, err = first.call(t.Context(), rec, put(write{"a", 2}, write{"b", 1}))
	require.NoError(t, err)
	require.NoError(t, first.commit(t.Context(), rec))
	p.copy.values = maps.Clone(p.recorded.values)
	return p, rec.Txn()
}

var placeBefore, placeAfter = map[string]string{"a": "1"}, map[string]string{"a": "2", "b": "1"}

func (p *places) state(w *kvStore, id string) revert.TxnState {
	t, err := p.in(w).reverter.Load(p.t.Context(), id)
	require.NoError(p.t, err)
	return t.State()
}

// TestEachFolderByItself checks that a revert in the copy does not count in the
// recorded folder, and the reverse.
func TestEachFolderByItself(t *testing.T) {
	ctx := t.Context()
	p, id := newPlaces(t)
	rep, err := p.in(p.copy).reverter.Revert(ctx, id, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, rep.State)
	require.Equal(t, placeBefore, p.copy.values)
	require.Equal(t, placeAfter, p.recorded.values)
	require.Equal(t, revert.TxnCommitted, p.state(p.recorded, id))
	require.Equal(t, revert.TxnReverted, p.state(p.copy, id))

	plain, err := revert.Load(ctx, p.last.journal, id)
	require.NoError(t, err)
	require.Equal(t, []revert.RemainsElsewhere{{Txn: rep.RevertTxn, Roots: folder("copy")}}, plain.Elsewhere)
	require.Empty(t, plain.RevertedBy)

	back, err := p.in(p.recorded).reverter.Redo(ctx, id, "me")
	require.NoError(t, err)
	require.Empty(t, back.Items)
	var elsewhere *revert.ElsewhereError
	_, err = p.last.reverter.Redo(ctx, rep.RevertTxn, "me")
	require.ErrorAs(t, err, &elsewhere)
	require.ErrorContains(t, err, `worked in another place: root "workspace" at copy`)

	mine, err := p.last.reverter.Revert(ctx, id, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, placeBefore, p.recorded.values)
	_, err = p.in(p.copy).reverter.Redo(ctx, mine.RevertTxn, "me")
	require.ErrorAs(t, err, &elsewhere)
	require.ErrorContains(t, err, "worked in another place: the recorded folders")
	_, err = p.last.reverter.Redo(ctx, rep.RevertTxn, "me")
	require.NoError(t, err)
	require.Equal(t, placeAfter, p.copy.values)
	require.Equal(t, placeBefore, p.recorded.values)
	require.Equal(t, revert.TxnCommitted, p.state(p.copy, id))
	require.Equal(t, revert.TxnReverted, p.state(p.recorded, id))
	_, err = revert.Fsck(ctx, p.last.journal, revert.FsckOptions{})
	require.NoError(t, err)
}

// TestUndoThatDiedInACopy checks a revert or redo whose process died in a copy.
// It does not block the recorded folder, completes nowhere else, and continues
// in the copy.
func TestUndoThatDiedInACopy(t *testing.T) {
	ctx := t.Context()
	died := false
	for n, done := 0, false; !done; n++ {
		for _, redo := range []bool{false, true} {
			p, id := newPlaces(t)
			dying := p.in(p.copy)
			dead := &failingJournal{Journal: dying.journal, left: 99}
			dying.reverter.Journal = dead
			from, to := placeAfter, placeBefore
			work := func() error { _, err := dying.reverter.Revert(ctx, id, revert.Options{}); return err }
			if redo {
				require.NoError(t, work())
				from, to = placeBefore, placeAfter
				work = func() error { _, err := dying.reverter.Redo(ctx, id, "me"); return err }
			}
			dead.left = n
			done = work() == nil
			link := p.unfinished()
			died = died || link != ""

			rec, err := p.in(p.recorded).reverter.Recover(ctx)
			require.NoError(t, err)
			require.Empty(t, rec.Settled)
			if link != "" {
				var elsewhere *revert.ElsewhereError
				_, err = p.last.reverter.Revert(ctx, link, revert.Options{})
				require.ErrorAs(t, err, &elsewhere)
			}
			_, err = p.last.reverter.Revert(ctx, id, revert.Options{})
			require.NoError(t, err)
			require.Equal(t, placeBefore, p.recorded.values)
			if want := from; link == "" {
				if done {
					want = to
				}
				require.Equal(t, want, p.copy.values)
			}
			for range 2 { // resources that a redo left in doubt are first reverted, and then redone
				_, err = p.in(p.copy).reverter.Revert(ctx, id, revert.Options{})
				require.NoError(t, err)
				require.Equal(t, placeBefore, p.copy.values)
			}
			require.Equal(t, revert.TxnReverted, p.state(p.copy, id))
			_, err = revert.Fsck(ctx, p.last.journal, revert.FsckOptions{})
			require.NoError(t, err)
		}
	}
	require.True(t, died)
}

// failingJournal is the journal of a process that dies after a number of writes, or
// that fails one read.
type failingJournal struct {
	journal.Journal
	left  int
	reads int // the read that fails
}

func (m *failingJournal) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	if m.reads--; m.reads == 0 {
		return func(yield func(record.Entry, error) bool) { yield(record.Entry{}, errProcessEnded) }
	}
	return m.Journal.Entries(ctx, q)
}

func (m *failingJournal) Append(ctx context.Context, b journal.Batch) error {
	if m.left--; m.left < 0 {
		return errProcessEnded
	}
	return m.Journal.Append(ctx, b)
}

// unfinished returns the transaction that has no end, or "" if there is none.
func (p *places) unfinished() string {
	open, err := p.last.journal.Unfinished(p.t.Context())
	require.NoError(p.t, err)
	if len(open) == 0 {
		return ""
	}
	return open[0].Txn
}

// TestOpenTransactionInACopy checks that an abandoned transaction ends before
// it is reverted in a copy. Its calls in flight are then unknown, because only
// the recorded folder tells their outcome.
func TestOpenTransactionInACopy(t *testing.T) {
	ctx := t.Context()
	p, _ := newPlaces(t)
	dying := p.in(p.recorded)
	rec, err := dying.begin(ctx)
	require.NoError(t, err)
	first, err := dying.call(ctx, rec, put(write{"a", 3}))
	require.NoError(t, err)
	dying.crashAt(1)
	_, err = dying.call(ctx, rec, put(write{"c", 1}, write{"d", 1}))
	require.ErrorIs(t, err, errProcessEnded)
	p.copy.values = maps.Clone(p.recorded.values)
	left := maps.Clone(p.recorded.values)

	there := p.in(p.copy)
	settled, err := there.reverter.Recover(ctx)
	require.NoError(t, err)
	require.Len(t, settled.Failed, 1)
	require.Contains(t, settled.Failed[0].Why, "another folder is named for this session")
	_, err = there.reverter.TakeOwnership(ctx, rec.Txn())
	require.ErrorIs(t, err, revert.ErrOtherFolder)
	_, err = there.reverter.Revert(ctx, first, revert.Options{})
	require.ErrorIs(t, err, revert.ErrNotEnded)
	rep, err := there.reverter.Preview(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete(), "%+v", rep)
	rep, err = there.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, rep.State)
	require.Equal(t, placeAfter, p.copy.values)
	require.Equal(t, left, p.recorded.values)

	require.Equal(t, revert.TxnRevertedPartial, p.state(p.recorded, rec.Txn()))
	rep, err = p.last.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, rep.State)
	require.Equal(t, placeAfter, p.recorded.values)
	_, err = revert.Fsck(ctx, p.last.journal, revert.FsckOptions{})
	require.NoError(t, err)
}

func heldCall() *record.Held {
	return &record.Held{Started: record.Started{Sequence: 9, Key: "k", Tool: record.ToolRef{Name: "put"}, Class: effect.Deferrable, Input: json.RawMessage(`{}`), Decision: json.RawMessage(`{}`)}}
}

// TestHeldCallsInACopy checks that held calls are dropped before their
// transaction ends.
func TestHeldCallsInACopy(t *testing.T) {
	ctx := t.Context()
	p, _ := newPlaces(t)
	dying := p.in(p.recorded)
	rec, err := dying.begin(ctx)
	require.NoError(t, err)
	_, err = dying.call(ctx, rec, put(write{"a", 3}))
	require.NoError(t, err)
	require.NoError(t, rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Call: "c_held", Body: heldCall()}, {Body: &record.Aborting{Why: "revert"}}}, Durable: true}))
	p.copy.values = maps.Clone(p.recorded.values)
	rep, err := p.in(p.copy).reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Len(t, rep.Items, 2)
	require.Equal(t, revert.ActionDrop, rep.Items[0].Action)
	require.Equal(t, placeAfter, p.copy.values)
}

// TestJournalThatFailsInACopy checks that a failed journal write never causes a
// false report, and that the next attempt completes the work.
func TestJournalThatFailsInACopy(t *testing.T) {
	ctx := t.Context()
	for _, writes := range []bool{false, true} {
		failed := true
		for n := 0; failed; n++ {
			p, id := newPlaces(t)
			_, err := p.in(p.copy).reverter.Revert(ctx, id, revert.Options{})
			require.NoError(t, err)
			dying := p.in(p.recorded)
			rec, err := dying.begin(ctx)
			require.NoError(t, err)
			_, err = dying.call(ctx, rec, put(write{"a", 3}))
			require.NoError(t, err)
			require.NoError(t, rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Call: "c_held", Body: heldCall()}}, Durable: true}))
			p.copy.values = map[string]string{"a": "3", "b": "1"}

			there := p.in(p.copy)
			m := &failingJournal{Journal: there.journal, left: 99}
			if there.reverter.Journal = m; writes {
				m.left = n
			} else {
				m.reads = n + 1
			}
			_, err = there.reverter.Revert(ctx, rec.Txn(), revert.Options{})
			if failed = err != nil; failed {
				require.ErrorIs(t, err, errProcessEnded)
			}
			_, err = p.in(p.copy).reverter.Revert(ctx, rec.Txn(), revert.Options{})
			require.NoError(t, err)
			require.Equal(t, placeAfter, p.copy.values)
			require.Equal(t, map[string]string{"a": "3", "b": "1"}, p.recorded.values)
		}
	}
}

// TestNamedFoldersFail checks that an error of the Named function ends the
// work before it begins.
func TestNamedFoldersFail(t *testing.T) {
	ctx := t.Context()
	p, id := newPlaces(t)
	failed := errors.New("no folders")
	now := p.in(p.recorded)
	now.reverter.Named = func(context.Context, string) ([]record.Root, error) { return nil, failed }
	_, err := now.reverter.Revert(ctx, id, revert.Options{})
	require.ErrorIs(t, err, failed)
	require.Equal(t, placeAfter, p.recorded.values)
}

// TestLaterCallInTheRecordedFolder checks a later call that ran in the recorded
// folder. It does not block a revert in a copy without its change, and blocks
// it in a copy with its change.
func TestLaterCallInTheRecordedFolder(t *testing.T) {
	ctx := t.Context()
	p, id := newPlaces(t)
	later := func(v int) (txn string) {
		now := p.in(p.recorded)
		rec, err := now.begin(ctx)
		require.NoError(t, err)
		_, err = now.call(ctx, rec, put(write{"a", v}))
		require.NoError(t, err)
		require.NoError(t, now.commit(ctx, rec))
		return rec.Txn()
	}
	_, err := p.in(p.copy).reverter.Revert(ctx, id, revert.Options{})
	require.NoError(t, err)
	later(3)
	rep, err := p.in(p.copy).reverter.Redo(ctx, id, "me")
	require.NoError(t, err)
	require.True(t, rep.Complete(), "%+v", rep)
	require.Equal(t, placeAfter, p.copy.values)
	foreseen, err := p.last.reverter.Preview(ctx, id, revert.Options{})
	require.NoError(t, err)
	require.True(t, foreseen.Complete(), "%+v", foreseen)
	require.Empty(t, foreseen.Dependents)
	rep, err = p.last.reverter.Revert(ctx, id, revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete(), "%+v", rep)
	require.Equal(t, placeBefore, p.copy.values)

	// A copy that contains the change of the later call.
	p.copy.values = maps.Clone(p.recorded.values)
	second, err := p.in(p.copy).reverter.Redo(ctx, id, "me")
	require.NoError(t, err)
	require.False(t, second.Complete(), "%+v", second)
	require.Equal(t, p.recorded.values, p.copy.values)

	p, id = newPlaces(t)
	top := later(3)
	p.copy.values = maps.Clone(p.recorded.values)
	rep, err = p.in(p.copy).reverter.Revert(ctx, id, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]effect.Outcome{"a": effect.Conflict, "b": effect.Restored}, outcomes(rep.Items))
	require.Contains(t, rep.NotReverted()[0].Why, "of transaction "+top+" changed it later")
	rep, err = p.last.reverter.Revert(ctx, id, revert.Options{Cascade: true})
	require.NoError(t, err)
	require.True(t, rep.Complete(), "%+v", rep)
	require.Equal(t, placeBefore, p.copy.values)
	for _, txn := range []string{id, top} {
		_, err = p.last.reverter.Redo(ctx, txn, "me")
		require.NoError(t, err)
	}
	require.Equal(t, p.recorded.values, p.copy.values)
	_, err = p.last.reverter.Revert(ctx, id, revert.Options{Force: true, By: "me"})
	require.NoError(t, err)
	require.Equal(t, placeBefore, p.copy.values)
	rep, err = p.last.reverter.Redo(ctx, id, "me")
	require.NoError(t, err)
	require.Contains(t, rep.NotReverted()[0].Why, "of transaction "+top+" changed it later or was redone later", "it came back here")
}

// TestLaterCallAfterACrashInACopy checks the same for recovery in the copy.
func TestLaterCallAfterACrashInACopy(t *testing.T) {
	ctx := t.Context()
	finished := false
	for n, done := 0, false; !done; n++ {
		for _, has := range []bool{false, true} {
			p, id := newPlaces(t)
			now := p.in(p.recorded)
			rec, err := now.begin(ctx)
			require.NoError(t, err)
			_, err = now.call(ctx, rec, put(write{"a", 3}))
			require.NoError(t, err)
			require.NoError(t, now.commit(ctx, rec))
			want := placeBefore
			if has {
				p.copy.values, want = maps.Clone(p.recorded.values), map[string]string{"a": "3"}
			}
			dying := p.in(p.copy)
			dying.reverter.Journal = &failingJournal{Journal: dying.journal, left: n}
			_, err = dying.reverter.Revert(ctx, id, revert.Options{})
			done = err == nil
			settled, err := p.in(p.copy).reverter.Recover(ctx)
			require.NoError(t, err)
			finished = finished || len(settled.Settled) > 0
			_, err = p.last.reverter.Revert(ctx, id, revert.Options{})
			require.NoError(t, err)
			require.Equal(t, want, p.copy.values)
		}
	}
	require.True(t, finished)
}
