package revert_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// TestSumOfUndos checks that a revert that reverted nothing does not hide an
// earlier one. A redo skips it and redoes the earlier one.
func TestSumOfUndos(t *testing.T) {
	ctx := t.Context()
	p := newProcess(journal.SharedMemory(), &kvStore{map[string]string{"a": "1", "b": "1"}}, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 2}, write{"b", 2}))
	require.NoError(t, err)
	require.NoError(t, p.commit(ctx, rec))
	load := func() (*revert.Txn, *revert.Call) {
		txn, err := revert.Load(ctx, p.journal, rec.Txn())
		require.NoError(t, err)
		return txn, txn.Calls[0]
	}
	undo := func() revert.Report {
		rep, err := p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
		require.NoError(t, err)
		return rep
	}
	_, call := load()
	require.Empty(t, call.RevertSummary())

	p.store.values["a"] = "hand"
	first := undo()
	require.Equal(t, map[string]effect.Outcome{"a": effect.Conflict, "b": effect.Restored}, outcomes(first.Items))
	second := undo()
	require.Equal(t, map[string]effect.Outcome{"a": effect.Conflict}, outcomes(second.Items))
	txn, call := load()
	require.Equal(t, "some", call.RevertSummary())
	require.Len(t, call.Reversals(), 2)
	require.True(t, txn.Redoable(first.RevertTxn))
	require.False(t, txn.Redoable(second.RevertTxn))
	require.True(t, call.WorkedOn(first.RevertTxn) && call.WorkedOn(second.RevertTxn))
	require.False(t, call.WorkedOn(txn.ID))

	back, err := p.reverter.Redo(ctx, first.RevertTxn, "kim")
	require.NoError(t, err)
	require.Equal(t, map[string]effect.Outcome{"b": effect.Restored}, outcomes(back.Items))
	require.Equal(t, revert.TxnCommitted, back.State)
	txn, call = load()
	require.Empty(t, call.RevertSummary())
	require.False(t, txn.Redoable(first.RevertTxn))

	// After two partial reverts, the second one is redone first.
	first = undo()
	require.Equal(t, map[string]effect.Outcome{"a": effect.Conflict, "b": effect.Restored}, outcomes(first.Items))
	p.store.values["a"] = "2"
	second = undo()
	require.Equal(t, map[string]effect.Outcome{"a": effect.Restored}, outcomes(second.Items))
	require.Equal(t, revert.TxnReverted, second.State)
	_, call = load()
	require.Equal(t, "all", call.RevertSummary())
	_, err = p.reverter.Redo(ctx, first.RevertTxn, "kim")
	require.ErrorContains(t, err, "was reverted by "+second.RevertTxn+" too; redo that one first")

	// A redo that left something unchanged.
	p.store.values["a"] = "hand"
	back, err = p.reverter.Redo(ctx, rec.Txn(), "kim")
	require.NoError(t, err)
	require.Equal(t, map[string]effect.Outcome{"a": effect.Conflict, "b": effect.Restored}, outcomes(back.Items))
	require.Equal(t, revert.TxnRevertedPartial, back.State, "b is there")
	_, call = load()
	require.Equal(t, "some", call.RevertSummary())
	require.False(t, call.IsReverted())
	p.store.values["a"] = "1"
	last := undo()
	require.Equal(t, map[string]effect.Outcome{"b": effect.Restored}, outcomes(last.Items))
	require.Equal(t, revert.TxnReverted, last.State)
	_, call = load()
	require.Equal(t, "all", call.RevertSummary())
	back, err = p.reverter.Redo(ctx, rec.Txn(), "kim")
	require.NoError(t, err)
	require.True(t, back.Complete(), "%+v", back)
	require.Equal(t, map[string]string{"a": "2", "b": "2"}, p.store.values)
}

// TestInterruptedUndoIsInFlight checks that the result of an interrupted revert
// is not reported before it is complete. Recovery then closes it.
func TestInterruptedUndoIsInFlight(t *testing.T) {
	ctx := t.Context()
	open, w := journal.SharedMemory(), &kvStore{before()}
	p := newProcess(open, w, 1)
	rec, err := p.begin(ctx)
	require.NoError(t, err)
	_, err = p.call(ctx, rec, put(write{"a", 7}, write{"c", 8}))
	require.NoError(t, err)
	require.NoError(t, p.commit(ctx, rec))
	p.crashAt(2)
	_, err = p.reverter.Revert(ctx, rec.Txn(), revert.Options{})
	require.ErrorIs(t, err, errProcessEnded)
	p.endProcess(t)
	q := newProcess(open, w, 2)
	txn, err := revert.Load(ctx, q.journal, rec.Txn())
	require.NoError(t, err)
	require.Equal(t, "in_flight", txn.Calls[0].RevertSummary())
	found, err := q.reverter.Recover(ctx)
	require.NoError(t, err)
	require.Empty(t, found.Abandoned)
	require.Equal(t, []revert.Finished{{Txn: txn.RevertedBy[0], Of: txn.ID, State: revert.TxnReverted}}, found.Finished)
	require.Equal(t, before(), w.values)
	left, err := q.journal.Unfinished(ctx)
	require.NoError(t, err)
	require.Empty(t, left)
}
