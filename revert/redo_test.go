package revert_test

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// TestRedoOfSeveralAttempts checks that one redo restores what one attempt
// reverted and what a later one forced.
func TestRedoOfSeveralAttempts(t *testing.T) {
	ctx := context.Background()
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	id, err := p.call(ctx, rec, put(write{"a", 7}, write{"b", nil}, write{"c", 8}))
	require.NoError(t, err)
	require.NoError(t, p.commit(ctx, rec))
	p.store.values["a"] = "theirs"
	rep, err := p.reverter.Revert(ctx, rec.Txn(), revert.Options{By: "agent"})
	require.NoError(t, err)
	require.False(t, rep.Complete())
	rep, err = p.reverter.Revert(ctx, id, revert.Options{Force: true, By: "kim"})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, before(), p.store.values)
	txn, err := revert.Load(ctx, p.journal, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, "kim", txn.Calls[0].Reversal.Reverting.By)
	rep, err = p.reverter.Redo(ctx, rec.Txn(), "ada")
	require.NoError(t, err)
	require.True(t, rep.Complete(), "%+v", rep)
	require.Equal(t, map[string]string{"a": "theirs", "c": "8"}, p.store.values)
	require.Equal(t, []string{"agent", "kim", "ada"}, requesters(t, p.journal))
	again, err := p.reverter.Redo(ctx, rec.Txn(), "ada")
	require.NoError(t, err)
	require.Empty(t, again.Items)
}

// requesters returns the requester of each revert, in order.
func requesters(t *testing.T, j journal.Journal) (all []string) {
	for e, err := range j.Entries(context.Background(), journal.Query{Kinds: []record.Kind{record.KindReverting}}) {
		require.NoError(t, err)
		rec, err := record.Unseal(e)
		require.NoError(t, err)
		b, ok := rec.Body.(*record.Reverting)
		require.True(t, ok)
		all = append(all, b.By)
	}
	return all
}

// TestRedoAfterACrashOfUndo kills a revert at each of its scheduling points.
// Recovery or a second revert completes it. Then a redo restores all of it.
func TestRedoAfterACrashOfUndo(t *testing.T) {
	ctx := context.Background()
	calls := []callSpec{put(write{"a", 7}, write{"b", nil}, write{"c", 8}), put(write{"a", 9}, write{"d", 10})}
	after := map[string]string{"a": "9", "c": "8", "d": "10"}
	run := func(at int, recovers bool) (total int) {
		open, w := journal.SharedMemory(), &kvStore{before()}
		p := newProcess(open, w, 1)
		rec, err := p.begin(ctx)
		require.NoError(t, err)
		for _, c := range calls {
			_, err = p.call(ctx, rec, c)
			require.NoError(t, err)
		}
		require.NoError(t, p.commit(ctx, rec))
		require.Equal(t, after, w.values)
		how := revert.Options{By: "kim"}
		if at < 0 {
			return p.points(func() { _, err = p.reverter.Revert(ctx, rec.Txn(), how) })
		}
		p.crashAt(at)
		_, err = p.reverter.Revert(ctx, rec.Txn(), how)
		require.ErrorIs(t, err, errProcessEnded)
		p.endProcess(t)
		q := newProcess(open, w, 2)
		if recovers {
			_, err = q.reverter.Recover(ctx)
			require.NoError(t, err)
		}
		rep, err := q.reverter.Revert(ctx, rec.Txn(), how)
		require.NoError(t, err)
		require.True(t, rep.Complete(), "killed at %d: %+v", at, rep)
		require.Equal(t, before(), w.values, "killed at %d", at)
		rep, err = q.reverter.Redo(ctx, rec.Txn(), "kim")
		require.NoError(t, err)
		require.True(t, rep.Complete(), "killed at %d: %+v", at, rep)
		require.Equal(t, after, maps.Clone(w.values), "killed at %d, recovered %v", at, recovers)
		for _, by := range requesters(t, q.journal) {
			require.Equal(t, "kim", by)
		}
		return 0
	}
	total := run(-1, false)
	require.Greater(t, total, 6)
	for at := range total {
		run(at, false)
		run(at, true)
	}
}

// TestRedoIsFinishedLater checks that a later redo can restore what the first
// one left, after the obstacle is gone. Until then the transaction is not
// committed.
func TestRedoIsFinishedLater(t *testing.T) {
	ctx := context.Background()
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 7}, write{"b", nil}, write{"c", 8}))
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"d", 9}))
	require.NoError(t, err)
	require.NoError(t, p.commit(ctx, rec))
	_, err = p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	p.store.values["a"] = "theirs"
	for range 2 { // the repetition changes nothing
		rep, err := p.reverter.Redo(ctx, rec.Txn(), "kim")
		require.NoError(t, err)
		require.Equal(t, effect.Conflict, outcomes(rep.Items)["a"])
		require.Equal(t, revert.TxnRevertedPartial, rep.State)
		require.Equal(t, map[string]string{"a": "theirs", "c": "8", "d": "9"}, p.store.values)
	}
	delete(p.store.values, "a")
	p.store.values["a"] = before()["a"] // the other actor restored it
	rep, err := p.reverter.Redo(ctx, rec.Txn(), "kim")
	require.NoError(t, err)
	require.Equal(t, map[string]effect.Outcome{"a": effect.Restored}, outcomes(rep.Items))
	require.Equal(t, revert.TxnCommitted, rep.State)
	require.Equal(t, map[string]string{"a": "7", "c": "8", "d": "9"}, p.store.values)
	rep, err = p.reverter.Redo(ctx, rec.Txn(), "kim")
	require.NoError(t, err)
	require.Empty(t, rep.Items)
	rep, err = p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, rep.State)
	require.Equal(t, before(), p.store.values)
}

// TestUndoAfterPartOfARedo reverts the part that was redone, and redoes all of
// it.
func TestUndoAfterPartOfARedo(t *testing.T) {
	ctx := context.Background()
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	id := p.changed(t, ctx, true)
	after := map[string]string{"a": "9", "c": "8"}
	p.store.values["b"] = "theirs"
	_, err := p.reverter.Redo(ctx, id, "kim")
	require.NoError(t, err)
	rep, err := p.reverter.Revert(ctx, id, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, rep.State, "%+v", rep)
	require.NotContains(t, outcomes(rep.Items), "b", "nobody brought it back")
	require.Equal(t, map[string]string{"a": "1", "b": "theirs"}, p.store.values)
	p.store.values["b"] = before()["b"]
	rep, err = p.reverter.Redo(ctx, id, "kim")
	require.NoError(t, err)
	require.True(t, rep.Complete(), "%+v", rep)
	require.Equal(t, after, p.store.values)
}

// TestUndoIsFinishedLater checks that a second revert ignores what the first
// one reverted, also if calls below it were reverted in between.
func TestUndoIsFinishedLater(t *testing.T) {
	ctx := context.Background()
	for name, how := range map[string]revert.Options{"they put it back": {}, "forced": {Force: true, By: "kim"}} {
		p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
		rec, err := p.begin(ctx)
		require.NoError(t, err)
		_, err = p.call(ctx, rec, put(write{"a", 7}, write{"c", 8}))
		require.NoError(t, err)
		_, err = p.call(ctx, rec, put(write{"a", 9}, write{"b", nil}))
		require.NoError(t, err)
		require.NoError(t, p.commit(ctx, rec))
		p.store.values["b"] = "theirs"
		rep, err := p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
		require.NoError(t, err)
		require.Len(t, rep.NotReverted(), 1)
		if !how.Force {
			delete(p.store.values, "b")
		}
		p.store.values["a"] = "made later" // another actor's value
		foreseen, err := p.reverter.Preview(ctx, rec.Txn(), how)
		require.NoError(t, err)
		rep, err = p.reverter.Revert(ctx, rec.Txn(), how)
		require.NoError(t, err)
		require.Equal(t, map[string]effect.Outcome{"b": effect.Restored}, outcomes(rep.Items), name)
		require.Equal(t, outcomes(foreseen.Items), outcomes(rep.Items), name)
		require.Equal(t, revert.TxnReverted, rep.State)
		require.Equal(t, map[string]string{"a": "made later", "b": "2"}, p.store.values, name)
	}
}

// TestRedoOfOneUndo checks the redo of one revert transaction. It restores what
// a force overwrote, and nothing that an earlier revert removed. Later reverts
// must be redone first.
func TestRedoOfOneUndo(t *testing.T) {
	ctx := context.Background()
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 7}, write{"b", nil}))
	require.NoError(t, err)
	require.NoError(t, p.commit(ctx, rec))
	p.store.values["a"] = "theirs"
	first, err := p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	second, err := p.reverter.Revert(ctx, rec.Txn(), revert.Options{Force: true, By: "kim"})
	require.NoError(t, err)
	require.True(t, second.Complete())
	require.Equal(t, before(), p.store.values)

	_, err = p.reverter.Redo(ctx, first.RevertTxn, "kim")
	require.ErrorIs(t, err, revert.ErrIsRevertTxn)
	require.ErrorContains(t, err, second.RevertTxn)
	rep, err := p.reverter.Redo(ctx, second.RevertTxn, "kim")
	require.NoError(t, err)
	require.Equal(t, map[string]effect.Outcome{"a": effect.Restored}, outcomes(rep.Items))
	require.Equal(t, revert.TxnRevertedPartial, rep.State)
	require.Equal(t, map[string]string{"a": "theirs", "b": "2"}, p.store.values)
	rep, err = p.reverter.Redo(ctx, second.RevertTxn, "kim")
	require.NoError(t, err)
	require.Empty(t, rep.Items, "twice equals once")

	rep, err = p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]effect.Outcome{"a": effect.Conflict}, outcomes(rep.Items), "as after the first attempt")
	p.store.values["a"] = "7"
	rep, err = p.reverter.Redo(ctx, first.RevertTxn, "kim") // the later one reverted nothing
	require.NoError(t, err)
	require.Equal(t, map[string]effect.Outcome{"b": effect.Restored}, outcomes(rep.Items))
	require.Equal(t, revert.TxnCommitted, rep.State, "%+v", rep)
	require.Equal(t, map[string]string{"a": "7"}, p.store.values)
	found, err := revert.Fsck(ctx, p.journal, revert.FsckOptions{})
	require.NoError(t, err)
	require.Empty(t, found.Problems)
}

// TestRedoOfACascade redoes all transactions that a revert included, also after
// a crash at any of its scheduling points.
func TestRedoOfACascade(t *testing.T) {
	ctx := context.Background()
	run := func(at int, recovers bool) (total int) {
		open, w := journal.SharedMemory(), &kvStore{before()}
		p := newProcess(open, w, 1)
		var ids []string
		for _, c := range []callSpec{put(write{"a", 7}, write{"b", nil}), put(write{"a", 8}, write{"c", 9}), put(write{"c", 10})} {
			rec, err := p.begin(ctx)
			require.NoError(t, err)
			_, err = p.call(ctx, rec, c)
			require.NoError(t, err)
			require.NoError(t, p.commit(ctx, rec))
			ids = append(ids, rec.Txn())
		}
		after := maps.Clone(w.values)
		rep, err := p.reverter.Revert(ctx, ids[0], revert.Options{Cascade: true})
		require.NoError(t, err)
		require.Equal(t, before(), w.values)
		if at < 0 {
			return p.points(func() { _, err = p.reverter.Redo(ctx, rep.RevertTxn, "kim") })
		}
		p.crashAt(at)
		_, err = p.reverter.Redo(ctx, rep.RevertTxn, "kim")
		require.ErrorIs(t, err, errProcessEnded)
		p.endProcess(t)
		q := newProcess(open, w, 2)
		if recovers {
			_, err = q.reverter.Recover(ctx)
			require.NoError(t, err)
		}
		again, err := q.reverter.Redo(ctx, rep.RevertTxn, "kim")
		require.NoError(t, err, "killed at %d", at)
		require.True(t, again.Complete(), "killed at %d: %+v", at, again)
		require.Equal(t, after, w.values, "killed at %d, recovered %v", at, recovers)
		for _, id := range ids {
			txn, err := revert.Load(ctx, q.journal, id)
			require.NoError(t, err)
			require.Equal(t, revert.TxnCommitted, txn.State(), "killed at %d", at)
		}
		left, err := q.journal.Unfinished(ctx)
		require.NoError(t, err)
		require.Empty(t, left)
		found, err := revert.Fsck(ctx, q.journal, revert.FsckOptions{})
		require.NoError(t, err)
		require.Empty(t, found.Problems)
		return 0
	}
	total := run(-1, false)
	require.Greater(t, total, 8)
	for at := range total {
		run(at, false)
		run(at, true)
	}
}
