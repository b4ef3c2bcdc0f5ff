package journaltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
)

func testOwners(t *testing.T, s store) {
	t.Run("a transaction begins once", func(t *testing.T) {
		j := s.fresh(t)
		own := begin(t, j, "t")
		require.Equal(t, []journal.Ownership{own}, unfinished(t, j))
		_ = refused(t, j, journal.ErrNotOwner, journal.Batch{Take: journal.OwnerChange{To: own}, Fence: own})
		end(t, j, own)
		require.Empty(t, unfinished(t, j))
		_ = refused(t, j, journal.ErrNotOwner, journal.Batch{Take: journal.OwnerChange{To: own}, Fence: own})
	})

	t.Run("a fence lets only the owner of an unfinished transaction in", func(t *testing.T) {
		j := s.fresh(t)
		own := begin(t, j, "t")
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: numbered("t", 1), Fence: own}))
		_ = refused(t, j, journal.ErrNotOwner, journal.Batch{Fence: journal.Ownership{Txn: "t", Owner: "somebody"}})
		_ = refused(t, j, journal.ErrNotOwner, journal.Batch{Fence: journal.Ownership{Txn: "t"}})
		_ = refused(t, j, journal.ErrNotOwner, journal.Batch{Fence: journal.Ownership{Txn: "u", Owner: own.Owner}})
		end(t, j, own)
		_ = refused(t, j, journal.ErrNotOwner, journal.Batch{Fence: own})
		_ = refused(t, j, journal.ErrNotOwner, journal.Batch{Fence: own, End: true})
	})

	t.Run("an adopted transaction is lost to its earlier owner", func(t *testing.T) {
		open := s(t)
		a, b := open.until(t), open.until(t)
		first := begin(t, a, "t", "r")
		second := journal.Ownership{Txn: "t", Owner: b.Owner()}
		take := journal.OwnerChange{From: first.Owner, To: second}
		require.NoError(t, b.Append(t.Context(), journal.Batch{Take: take, Fence: second, Entries: numbered("t", 1), Durable: true}))
		require.Equal(t, []journal.Ownership{second}, unfinished(t, a))
		_ = refused(t, a, journal.ErrNotOwner, journal.Batch{Fence: first})
		_ = refused(t, b, journal.ErrNotOwner, journal.Batch{Take: take, Fence: second}) // the race was lost
		begin(t, a, "u")
		u := journal.Ownership{Txn: "u", Owner: a.Owner()}
		refusedClaim(t, a, journal.Batch{Fence: u, Claims: []string{"r"}}, "r", "t")
		end(t, b, second)
	})

	t.Run("nothing unknown or ended can be adopted", func(t *testing.T) {
		j := s.fresh(t)
		own := begin(t, j, "t")
		end(t, j, own)
		for _, txn := range []string{"t", "never"} {
			to := journal.Ownership{Txn: txn, Owner: "b"}
			_ = refused(t, j, journal.ErrNotOwner, journal.Batch{Take: journal.OwnerChange{From: own.Owner, To: to}, Fence: to})
		}
	})

	t.Run("a refused fence undoes the take beside it", func(t *testing.T) {
		j := s.fresh(t)
		own := begin(t, j, "t")
		_ = refused(t, j, journal.ErrNotOwner, journal.Batch{
			Take:  journal.OwnerChange{To: journal.Ownership{Txn: "u", Owner: j.Owner()}},
			Fence: journal.Ownership{Txn: "t", Owner: "somebody"},
		})
		require.Equal(t, []journal.Ownership{own}, unfinished(t, j))
	})

	t.Run("a batch may take one transaction and be fenced by another", func(t *testing.T) {
		j := s.fresh(t)
		own := begin(t, j, "t")
		u := journal.Ownership{Txn: "u", Owner: j.Owner()}
		require.NoError(t, j.Append(t.Context(), journal.Batch{Take: journal.OwnerChange{To: u}, Fence: own, Durable: true}))
		require.Equal(t, []journal.Ownership{own, u}, unfinished(t, j))
	})

	t.Run("unfinished transactions are listed by age, which an adoption does not change", func(t *testing.T) {
		open := s(t)
		j := open.until(t)
		b, a, c := begin(t, j, "b"), begin(t, j, "a"), begin(t, j, "c")
		d := journal.Ownership{Txn: "d", Owner: "x"}
		require.NoError(t, j.Append(t.Context(), journal.Batch{Take: journal.OwnerChange{To: d}, Durable: true}))
		require.Equal(t, []journal.Ownership{b, a, c, d}, unfinished(t, j))
		end(t, j, a)
		taken := journal.Ownership{Txn: "b", Owner: "y"}
		require.NoError(t, j.Append(t.Context(), journal.Batch{Take: journal.OwnerChange{From: b.Owner, To: taken}, Durable: true}))
		require.Equal(t, []journal.Ownership{taken, c, d}, unfinished(t, open.until(t)))
	})
}

// refused appends a batch, alone and with more to store, and requires that
// nothing of it is stored.
func refused(t *testing.T, j journal.Journal, want error, b journal.Batch) error {
	t.Helper()
	before, open := read(t, j, journal.Query{}), unfinished(t, j)
	data := []byte("of a refused batch")
	more := b
	more.Entries, more.Blobs, more.Durable = numbered("t", 2), append(b.Blobs, inline(data)), true
	b.Entries = numbered("t", 1)
	for _, b := range []journal.Batch{more, b} {
		require.ErrorIs(t, j.Append(t.Context(), b), want)
		require.Equal(t, before, read(t, j, journal.Query{}))
		require.Equal(t, open, unfinished(t, j))
	}
	_, missing := j.OpenContent(t.Context(), inline(data).Ref())
	require.ErrorIs(t, missing, journal.ErrNotFound)
	return j.Append(t.Context(), b)
}
