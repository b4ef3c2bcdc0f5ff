package revert_test

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// pagedJournal reads like a store with pages: up to the end of the journal when the
// read began, but each page in its current state. An erasure runs after a
// number of entries.
type pagedJournal struct {
	journal.Journal
	left  int
	erase func()
}

func (j *pagedJournal) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		last, err := j.Head(ctx)
		if err != nil {
			yield(record.Entry{}, err)
			return
		}
		for {
			if j.left == 0 {
				j.erase()
			}
			j.left--
			one := q
			one.Limit = 1
			found := false
			for e, err := range j.Journal.Entries(ctx, one) {
				found = err != nil || e.Pos <= last.Size
				if found && !yield(e, err) {
					return
				}
				q.After = e.Pos
			}
			if !found || q.Newest || q.Limit == 1 {
				return
			}
		}
	}
}

// TestReadDuringAnErasure runs an erasure at each entry of a read. The read
// returns the transaction as it was before or after, and never as damaged.
func TestReadDuringAnErasure(t *testing.T) {
	ctx := t.Context()
	total := -1
	for at := 0; total < 0 || at <= total; at++ {
		store := journal.SharedMemory()
		p, q := newProcess(store, &kvStore{before()}, 1), newProcess(store, nil, 2)
		txn := p.one(t, "a", 1)
		for range 2 {
			_, err := p.reverter.Revert(ctx, txn, revert.Options{})
			require.NoError(t, err)
			_, err = p.reverter.Redo(ctx, txn, "kim")
			require.NoError(t, err)
		}
		was, err := revert.Load(ctx, p.journal, txn)
		require.NoError(t, err)
		call := was.Calls[0].Ref.Call
		erased := false
		j := &pagedJournal{Journal: p.journal, left: at, erase: func() {
			erased = true
			_, err := q.reverter.Erase(ctx, call, record.Erased{By: "kim", Why: "x"})
			require.NoError(t, err)
		}}
		got, err := revert.Load(ctx, j, txn)
		require.NoError(t, err, "erased at %d", at)
		require.Equal(t, revert.TxnCommitted, got.State(), "erased at %d", at)
		require.Empty(t, got.InFlight(), "erased at %d", at)
		if !erased {
			total = at
		}
	}
	require.Greater(t, total, 10)
}
