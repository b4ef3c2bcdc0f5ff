package journaltest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

const (
	hammerCallers = 24
	hammerBatches = 12
)

// testHammer appends from many goroutines through several openings at once.
// Some batches must be refused.
func testHammer(t *testing.T, s store) {
	t.Run("batches stay whole and in their caller's order", func(t *testing.T) {
		open := s(t)
		journals := []journal.Journal{open.until(t), open.until(t), open.until(t)}
		var all sync.WaitGroup
		failures := make([]error, hammerCallers)
		for caller := range hammerCallers {
			all.Go(func() { failures[caller] = hammer(t, journals[caller%len(journals)], caller) })
		}
		all.Wait()
		require.NoError(t, errors.Join(failures...))
		requireWhole(t, read(t, journals[0], journal.Query{}))
	})

	t.Run("readers beside appends see what was acknowledged before", func(t *testing.T) {
		open := s(t)
		j := open.until(t)
		var all sync.WaitGroup
		failures := make([]error, hammerCallers)
		for caller := range hammerCallers {
			all.Go(func() { failures[caller] = appendAndRead(t, j, fmt.Sprint("t", caller)) })
		}
		all.Wait()
		require.NoError(t, errors.Join(failures...))
	})

	t.Run("one of many gets a claim", func(t *testing.T) {
		open := s(t)
		journals := []journal.Journal{open.until(t), open.until(t)}
		var all sync.WaitGroup
		errs := make([]error, hammerCallers)
		for caller := range hammerCallers {
			all.Go(func() {
				j := journals[caller%len(journals)]
				own := journal.Ownership{Txn: fmt.Sprint("t", caller), Owner: j.Owner()}
				errs[caller] = j.Append(t.Context(), journal.Batch{Take: journal.OwnerChange{To: own}, Fence: own, Claims: []string{"r"}, Durable: true})
			})
		}
		all.Wait()
		winners := unfinished(t, journals[0])
		require.Len(t, winners, 1)
		for caller, err := range errs {
			if winners[0].Txn == fmt.Sprint("t", caller) {
				require.NoError(t, err)
				continue
			}
			claimed, ok := errors.AsType[*journal.ClaimedError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, winners[0].Txn, claimed.Holder)
		}
	})
}

// appendAndRead reads after each append: its own entries are there, and no head
// is before an earlier one.
func appendAndRead(t *testing.T, j journal.Journal, txn string) error {
	last := int64(0)
	for n := range 2 * hammerBatches {
		if err := j.Append(t.Context(), journal.Batch{Entries: numbered(txn, 1), Durable: n%3 > 0}); err != nil {
			return err
		}
		h, err := j.Head(t.Context())
		if err != nil {
			return err
		}
		found := 0
		for _, err := range j.Entries(t.Context(), journal.Query{Txn: txn}) {
			if err != nil {
				return err
			}
			found++
		}
		if h.Size <= last || found != n+1 {
			return fmt.Errorf("%s: after append %d: %d entries of it; the head went from %d to %d", txn, n+1, found, last, h.Size)
		}
		last = h.Size
	}
	return nil
}

// hammer appends batches of a growing size in one transaction. Between them it
// tries a batch that the fence must refuse and that shares a durable step with
// others.
func hammer(t *testing.T, j journal.Journal, caller int) error {
	txn := fmt.Sprint("t", caller)
	own := journal.Ownership{Txn: txn, Owner: j.Owner()}
	take := journal.OwnerChange{To: own}
	for n := range hammerBatches {
		b := journal.Batch{Take: take, Fence: own, Durable: n%3 > 0}
		for i := range n%4 + 1 {
			h := record.Header{Txn: txn, Call: fmt.Sprintf("%s.%d", txn, n), Session: fmt.Sprint(n%4 + 1)}
			b.Entries = append(b.Entries, entry(h, i))
		}
		if err := j.Append(t.Context(), b); err != nil {
			return fmt.Errorf("caller %d, batch %d: %w", caller, n, err)
		}
		take = journal.OwnerChange{}
		foreign := journal.Batch{Entries: numbered("foreign", 2), Fence: journal.Ownership{Txn: txn, Owner: "x"}, Durable: true}
		if err := j.Append(t.Context(), foreign); !errors.Is(err, journal.ErrNotOwner) {
			return fmt.Errorf("caller %d: a foreign batch got %w", caller, err)
		}
	}
	return nil
}

// requireWhole checks that the entries of each batch, which its call names, are
// adjacent and as many as their session says.
func requireWhole(t *testing.T, all []record.Entry) {
	t.Helper()
	next := map[string]int{} // by transaction, the next expected batch
	for i := 0; i < len(all); {
		h := all[i].Header
		require.Equal(t, fmt.Sprintf("%s.%d", h.Txn, next[h.Txn]), h.Call)
		next[h.Txn]++
		size := 0
		for i < len(all) && all[i].Header.Call == h.Call {
			require.Equal(t, int64(i+1), all[i].Pos)
			i, size = i+1, size+1
		}
		require.Equal(t, h.Session, fmt.Sprint(size))
	}
	require.Len(t, next, hammerCallers)
	for _, n := range next {
		require.Equal(t, hammerBatches, n)
	}
}
