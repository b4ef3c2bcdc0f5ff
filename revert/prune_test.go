package revert_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

const day = 24 * time.Hour

// one runs a committed transaction of one call, and returns its ID.
func (p *process) one(t *testing.T, key string, value any) string {
	t.Helper()
	rec, err := p.begin(t.Context())
	require.NoError(t, err)
	_, err = p.call(t.Context(), rec, put(write{key, value}))
	require.NoError(t, err)
	require.NoError(t, p.commit(t.Context(), rec))
	return rec.Txn()
}

func (p *process) prune(t *testing.T, keep revert.Retention) revert.PruneReport {
	t.Helper()
	done, err := p.reverter.Prune(t.Context(), keep)
	require.NoError(t, err)
	_, err = revert.Fsck(t.Context(), p.journal, revert.FsckOptions{})
	require.NoError(t, err)
	return done
}

func (p *process) pruned(t *testing.T, txn string) bool {
	t.Helper()
	got, err := revert.Load(t.Context(), p.journal, txn)
	require.NoError(t, err)
	return got.Calls[0].Phase == revert.PhaseErased
}

// TestRetentionIsJournalTime checks that a clock that jumps makes nothing old.
func TestRetentionIsJournalTime(t *testing.T) {
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	first := p.one(t, "a", 1)
	p.host.Advance(400 * day) // no writes for so long, or a clock jump
	second := p.one(t, "a", 2)
	p.host.Advance(-800 * day)
	p.one(t, "a", 3)
	require.Zero(t, p.prune(t, revert.Retention{MaxAge: 2 * day}).Txns)
	p.host.Advance(day)
	p.one(t, "a", 4)
	require.Equal(t, 1, p.prune(t, revert.Retention{MaxAge: 2 * day}).Txns, "two days on which something was written")
	require.True(t, p.pruned(t, first))
	require.False(t, p.pruned(t, second), "the step back counts as nothing")
	require.Zero(t, p.prune(t, revert.Retention{MaxAge: 2 * day}).Txns, "twice is once")

	_, err := p.reverter.Revert(t.Context(), first, revert.Options{})
	require.ErrorIs(t, err, record.ErrErased)
	_, err = p.reverter.Redo(t.Context(), first, "")
	require.ErrorIs(t, err, record.ErrErased)
	got, err := revert.Load(t.Context(), p.journal, first)
	require.NoError(t, err)
	require.Equal(t, revert.TxnCommitted, got.State(), "an attempt that could do nothing says nothing else")
	require.Empty(t, got.RevertedBy)
}

// TestLinkedTransactionsArePrunedTogether checks that a transaction is pruned
// with its revert and its redo, when all of them are old.
func TestLinkedTransactionsArePrunedTogether(t *testing.T) {
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	first := p.one(t, "a", 1)
	p.host.Advance(day)
	second := p.one(t, "b", 1)
	p.host.Advance(day)
	_, err := p.reverter.Revert(t.Context(), first, revert.Options{})
	require.NoError(t, err)
	done := p.prune(t, revert.Retention{MaxAge: day})
	require.Equal(t, 1, done.Txns)
	require.True(t, p.pruned(t, second))
	require.False(t, p.pruned(t, first), "it was reverted just now, and that can be redone")
	_, err = p.reverter.Redo(t.Context(), first, "")
	require.NoError(t, err)
	require.Equal(t, 3, p.prune(t, revert.Retention{}).Calls, "the call, its undo and its redo")
	require.True(t, p.pruned(t, first))
}

// TestPruneKeepsUnresolvedTransactions checks that prune keeps transactions
// that need a person's attention, and reports each once.
func TestPruneKeepsUnresolvedTransactions(t *testing.T) {
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	open, err := p.begin(t.Context())
	require.NoError(t, err)
	_, err = p.call(t.Context(), open, put(write{"a", 1}))
	require.NoError(t, err)
	partial := p.one(t, "b", 1)
	p.store.set("b", "v:foreign")
	rep, err := p.reverter.Revert(t.Context(), partial, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnRevertedPartial, rep.State)
	unknown, err := p.begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, unknown.Write(t.Context(), revert.Write{Records: []revert.CallRecord{
		{Call: "c_u", Body: &record.Started{Sequence: 1, Key: "k", Tool: record.ToolRef{Name: "send"}, Class: effect.Pivot, Input: []byte("{}"), Decision: []byte("{}")}},
		{Call: "c_u", Body: &record.Unknown{Status: "unknown", Why: "lost"}},
	}}))
	require.NoError(t, p.commit(t.Context(), unknown))
	done := p.prune(t, revert.Retention{})
	require.Zero(t, done.Txns)
	require.Len(t, done.Kept, 3)
	_, err = p.reverter.Erase(t.Context(), "c_u", record.Erased{By: "kim", Why: "x"})
	require.ErrorIs(t, err, revert.ErrNotEnded)
	require.NoError(t, p.reverter.ResolveUnknown(t.Context(), "c_u", record.Decided{Applied: true, By: "kim", Why: "looked"}))
	require.Equal(t, 1, p.prune(t, revert.Retention{}).Txns)
}

// TestPruneCrashAtEveryPoint kills a prune before each of its steps. Each
// transaction is then complete or gone, and the next prune has the same result.
func TestPruneCrashAtEveryPoint(t *testing.T) {
	make := func() (*process, func() journal.Journal, []string) {
		store := journal.SharedMemory()
		p := newProcess(store, &kvStore{before()}, 1)
		var txns []string
		for n := range 3 * revert.BatchCalls {
			txns = append(txns, p.one(t, "a", n))
		}
		_, err := p.reverter.Revert(t.Context(), txns[len(txns)-1], revert.Options{})
		require.NoError(t, err)
		return p, store, txns
	}
	p, _, _ := make()
	steps := p.points(func() { require.Equal(t, 3*revert.BatchCalls, p.prune(t, revert.Retention{}).Txns) })
	require.Equal(t, 3, steps)
	for n := range steps {
		p, store, txns := make()
		p.crashAt(n)
		_, err := p.reverter.Prune(t.Context(), revert.Retention{})
		require.ErrorIs(t, err, errProcessEnded)
		p.endProcess(t)
		next := newProcess(store, p.store, 2)
		_, err = revert.Fsck(t.Context(), next.journal, revert.FsckOptions{})
		require.NoError(t, err)
		require.Equal(t, (3-n)*revert.BatchCalls, next.prune(t, revert.Retention{}).Txns)
		for _, txn := range txns {
			require.True(t, next.pruned(t, txn))
		}
	}
}

// TestNoErasureDuringARevert checks that the claim of a revert
// blocks an erasure, which then leaves no trace.
func TestNoErasureDuringARevert(t *testing.T) {
	store := journal.SharedMemory()
	p := newProcess(store, &kvStore{before()}, 1)
	txn := p.one(t, "a", 1)
	got, err := revert.Load(t.Context(), p.journal, txn)
	require.NoError(t, err)
	call := got.Calls[0].Ref.Call
	busy := newProcess(store, p.store, 2)
	busy.crashAt(2) // half-way through the revert, and still alive
	_, err = busy.reverter.Revert(t.Context(), txn, revert.Options{})
	require.Error(t, err)
	_, err = p.reverter.Erase(t.Context(), call, record.Erased{By: "kim", Why: "x"})
	require.ErrorIs(t, err, revert.ErrBusy)
	require.False(t, p.pruned(t, txn))
}
