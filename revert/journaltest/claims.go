package journaltest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
)

func testClaims(t *testing.T, s store) {
	t.Run("a second claimer is refused and told the holder", func(t *testing.T) {
		j := s.fresh(t)
		begin(t, j, "t", "r1", "r2")
		u := begin(t, j, "u", "r3")
		refusedClaim(t, j, journal.Batch{Fence: u, Claims: []string{"r2"}}, "r2", "t")
	})

	t.Run("one conflict refuses all claims of the batch", func(t *testing.T) {
		j := s.fresh(t)
		tx := begin(t, j, "t", "r1")
		u := begin(t, j, "u")
		refusedClaim(t, j, journal.Batch{Fence: u, Claims: []string{"free", "r1", "free2"}}, "r1", "t")
		claim(t, j, tx, "free", "free2")
	})

	t.Run("a refused claim undoes the take beside it", func(t *testing.T) {
		j := s.fresh(t)
		begin(t, j, "t", "r")
		u := journal.Ownership{Txn: "u", Owner: j.Owner()}
		refusedClaim(t, j, journal.Batch{Take: journal.OwnerChange{To: u}, Fence: u, Claims: []string{"r"}}, "r", "t")
	})

	t.Run("a transaction may claim again what it holds", func(t *testing.T) {
		j := s.fresh(t)
		tx := begin(t, j, "t", "r", "r")
		claim(t, j, tx, "r", "r2", "r2")
		claim(t, j, tx, "r2")
		refusedClaim(t, j, journal.Batch{Fence: begin(t, j, "u"), Claims: []string{"r"}}, "r", "t")
	})

	t.Run("the end releases all claims of its transaction and no others", func(t *testing.T) {
		j := s.fresh(t)
		tx, u := begin(t, j, "t", "r1"), begin(t, j, "u", "r2")
		claim(t, j, tx, "r3")
		require.NoError(t, j.Append(t.Context(), journal.Batch{Fence: tx, Claims: []string{"r4"}, End: true, Durable: true}))
		claim(t, j, u, "r1", "r3", "r4")
		v := begin(t, j, "v")
		refusedClaim(t, j, journal.Batch{Fence: v, Claims: []string{"r2"}}, "r2", "u")
	})

	t.Run("a refused end keeps the claims", func(t *testing.T) {
		j := s.fresh(t)
		begin(t, j, "t", "r1")
		u := begin(t, j, "u", "r2")
		refusedClaim(t, j, journal.Batch{Fence: u, Claims: []string{"r1"}, End: true}, "r1", "t")
		refusedClaim(t, j, journal.Batch{Fence: begin(t, j, "v"), Claims: []string{"r2"}}, "r2", "u")
	})

	t.Run("claims hold for every opening, also after their owner is gone", func(t *testing.T) {
		open := s(t)
		gone := open(t)
		begin(t, gone, "t", "r")
		j := open.until(t)
		u := begin(t, j, "u")
		refusedClaim(t, j, journal.Batch{Fence: u, Claims: []string{"r"}}, "r", "t")
		require.NoError(t, gone.Close())
		refusedClaim(t, j, journal.Batch{Fence: u, Claims: []string{"r"}}, "r", "t")
	})

	t.Run("resources are compared byte by byte", func(t *testing.T) {
		j := s.fresh(t)
		begin(t, j, "t", "file://w/a", "file://w/é", "")
		begin(t, j, "u", "file://w/A", "file://w/a ", "file://w/e\u0301", "file://w/a\x00")
	})
}

func claim(t *testing.T, j journal.Journal, own journal.Ownership, resources ...string) {
	t.Helper()
	require.NoError(t, j.Append(t.Context(), journal.Batch{Fence: own, Claims: resources, Durable: true}))
}

func refusedClaim(t *testing.T, j journal.Journal, b journal.Batch, resource, holder string) {
	t.Helper()
	err := refused(t, j, journal.ErrClaimed, b)
	claimed, ok := errors.AsType[*journal.ClaimedError](err)
	require.True(t, ok)
	require.Equal(t, journal.ClaimedError{Resource: resource, Holder: holder}, *claimed)
}
