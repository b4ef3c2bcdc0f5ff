package journaltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
)

func testOwners(t *testing.T, s store) {
	t.Run("a transaction begins once", func(t *testing.T) {
		j := s.fresh(t)
		own := begin(t, j, "t")
		require.Equal(t, []revert.Ownership{own}, unfinished(t, j))
		_ = refused(t, j, revert.ErrNotOwner, revert.Batch{Take: revert.Take{To: own}, Fence: own})
		end(t, j, own)
		require.Empty(t, unfinished(t, j))
		_ = refused(t, j, revert.ErrNotOwner, revert.Batch{Take: revert.Take{To: own}, Fence: own})
	})

	t.Run("a fence lets only the owner of an unfinished transaction in", func(t *testing.T) {
		j := s.fresh(t)
		own := begin(t, j, "t")
		require.NoError(t, j.Append(t.Context(), revert.Batch{Entries: numbered("t", 1), Fence: own}))
		_ = refused(t, j, revert.ErrNotOwner, revert.Batch{Fence: revert.Ownership{Txn: "t", Owner: "somebody"}})
		_ = refused(t, j, revert.ErrNotOwner, revert.Batch{Fence: revert.Ownership{Txn: "t"}})
		_ = refused(t, j, revert.ErrNotOwner, revert.Batch{Fence: revert.Ownership{Txn: "u", Owner: own.Owner}})
		end(t, j, own)
		_ = refused(t, j, revert.ErrNotOwner, revert.Batch{Fence: own})
		_ = refused(t, j, revert.ErrNotOwner, revert.Batch{Fence: own, End: true})
	})

	t.Run("an adopted transaction is lost to its earlier owner", func(t *testing.T) {
		open := s(t)
		a, b := open.until(t), open.until(t)
		first := begin(t, a, "t", "r")
		second := revert.Ownership{Txn: "t", Owner: b.Owner()}
		take := revert.Take{From: first.Owner, To: second}
		require.NoError(t, b.Append(t.Context(), revert.Batch{Take: take, Fence: second, Entries: numbered("t", 1), Durable: true}))
		require.Equal(t, []revert.Ownership{second}, unfinished(t, a))
		_ = refused(t, a, revert.ErrNotOwner, revert.Batch{Fence: first})
		_ = refused(t, b, revert.ErrNotOwner, revert.Batch{Take: take, Fence: second}) // the race was lost
		begin(t, a, "u")
		u := revert.Ownership{Txn: "u", Owner: a.Owner()}
		refusedClaim(t, a, revert.Batch{Fence: u, Claims: []string{"r"}}, "r", "t")
		end(t, b, second)
	})

	t.Run("nothing unknown or ended can be adopted", func(t *testing.T) {
		j := s.fresh(t)
		own := begin(t, j, "t")
		end(t, j, own)
		for _, txn := range []string{"t", "never"} {
			to := revert.Ownership{Txn: txn, Owner: "b"}
			_ = refused(t, j, revert.ErrNotOwner, revert.Batch{Take: revert.Take{From: own.Owner, To: to}, Fence: to})
		}
	})

	t.Run("a refused fence undoes the take beside it", func(t *testing.T) {
		j := s.fresh(t)
		own := begin(t, j, "t")
		_ = refused(t, j, revert.ErrNotOwner, revert.Batch{
			Take:  revert.Take{To: revert.Ownership{Txn: "u", Owner: j.Owner()}},
			Fence: revert.Ownership{Txn: "t", Owner: "somebody"},
		})
		require.Equal(t, []revert.Ownership{own}, unfinished(t, j))
	})

	t.Run("a batch may take one transaction and be fenced by another", func(t *testing.T) {
		j := s.fresh(t)
		own := begin(t, j, "t")
		u := revert.Ownership{Txn: "u", Owner: j.Owner()}
		require.NoError(t, j.Append(t.Context(), revert.Batch{Take: revert.Take{To: u}, Fence: own, Durable: true}))
		require.Equal(t, []revert.Ownership{own, u}, unfinished(t, j))
	})

	t.Run("unfinished transactions are listed by age, which an adoption does not change", func(t *testing.T) {
		open := s(t)
		j := open.until(t)
		b, a, c := begin(t, j, "b"), begin(t, j, "a"), begin(t, j, "c")
		d := revert.Ownership{Txn: "d", Owner: "x"}
		require.NoError(t, j.Append(t.Context(), revert.Batch{Take: revert.Take{To: d}, Durable: true}))
		require.Equal(t, []revert.Ownership{b, a, c, d}, unfinished(t, j))
		end(t, j, a)
		taken := revert.Ownership{Txn: "b", Owner: "y"}
		require.NoError(t, j.Append(t.Context(), revert.Batch{Take: revert.Take{From: b.Owner, To: taken}, Durable: true}))
		require.Equal(t, []revert.Ownership{taken, c, d}, unfinished(t, open.until(t)))
	})
}

// refused appends a batch, alone and with more to store, and requires that
// nothing of it stays.
func refused(t *testing.T, j revert.Journal, want error, b revert.Batch) error {
	t.Helper()
	before, open := read(t, j, revert.Query{}), unfinished(t, j)
	data := []byte("of a refused batch")
	more := b
	more.Entries, more.Blobs, more.Durable = numbered("t", 2), append(b.Blobs, inline(data)), true
	b.Entries = numbered("t", 1)
	for _, b := range []revert.Batch{more, b} {
		require.ErrorIs(t, j.Append(t.Context(), b), want)
		require.Equal(t, before, read(t, j, revert.Query{}))
		require.Equal(t, open, unfinished(t, j))
	}
	_, missing := j.Open(t.Context(), inline(data).Ref())
	require.ErrorIs(t, missing, revert.ErrNotFound)
	return j.Append(t.Context(), b)
}
