package revert_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// TestPartOfARedoIsNotShownAsReverted checks a transaction that was reverted
// and redone in part. It has effects, so it is not reverted, and prune keeps
// its data.
func TestPartOfARedoIsNotShownAsReverted(t *testing.T) {
	ctx := context.Background()
	for name, commit := range map[string]bool{"committed": true, "open": false} {
		p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
		rec, err := p.begin(ctx)
		require.NoError(t, err)
		for _, w := range []write{{"a", 7}, {"c", 8}} {
			_, err = p.call(ctx, rec, put(w))
			require.NoError(t, err)
		}
		if commit {
			require.NoError(t, p.commit(ctx, rec))
			_, err = p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
		} else {
			_, err = p.reverter.Abort(ctx, rec.Txn(), revert.Options{})
		}
		require.NoError(t, err)
		p.store.values["a"] = "theirs"
		rep, err := p.reverter.Redo(ctx, rec.Txn(), "kim")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a": "theirs", "b": "2", "c": "8"}, p.store.values, name)
		require.Equal(t, revert.TxnRevertedPartial, rep.State, name)
		require.Len(t, p.prune(t, revert.Retention{}).Kept, 1, name)

		rep, err = p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
		require.NoError(t, err)
		require.True(t, rep.Complete(), "%s: %+v", name, rep)
		require.Equal(t, revert.TxnReverted, rep.State, name)
		require.Equal(t, map[string]string{"a": "theirs", "b": "2"}, p.store.values, name)
	}
}

// TestStateDuringARevert kills a revert of a redone
// transaction at each of its scheduling points. A half-reverted transaction is
// not committed.
func TestStateDuringARevert(t *testing.T) {
	ctx := context.Background()
	run := func(at int) int {
		open, w := journal.SharedMemory(), &kvStore{before()}
		p := newProcess(open, w, 1)
		rec, err := p.begin(ctx)
		require.NoError(t, err)
		for _, w := range []write{{"a", 7}, {"c", 8}} {
			_, err = p.call(ctx, rec, put(w))
			require.NoError(t, err)
		}
		require.NoError(t, p.commit(ctx, rec))
		after := map[string]string{"a": "7", "b": "2", "c": "8"}
		for range 2 {
			_, err = p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
			require.NoError(t, err)
			_, err = p.reverter.Redo(ctx, rec.Txn(), "kim")
			require.NoError(t, err)
			require.Equal(t, after, w.values)
		}
		undo := func() { _, err = p.reverter.Revert(ctx, rec.Txn(), revert.Options{}) }
		if at < 0 {
			return p.points(undo)
		}
		p.crashAt(at)
		undo()
		require.ErrorIs(t, err, errProcessEnded)
		p.endProcess(t)
		q := newProcess(open, w, 2)
		txn, err := revert.Load(ctx, q.journal, rec.Txn())
		require.NoError(t, err)
		if gone := len(txn.EffectiveCalls()) < 2; gone || w.values["c"] != "8" {
			require.NotEqual(t, revert.TxnCommitted, txn.State(), "killed at %d: %+v", at, w.values)
		}
		if w.values["a"] == "7" || w.values["c"] == "8" {
			require.NotEqual(t, revert.TxnReverted, txn.State(), "killed at %d: %+v", at, w.values)
		}
		return 0
	}
	for at := range run(-1) {
		run(at)
	}
}
