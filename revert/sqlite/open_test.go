package sqlite_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/sqlite"
)

// TestOpenTogether opens a missing journal many times at once. One opening
// creates it, and the others wait until it is complete.
func TestOpenTogether(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				j, err := sqlite.Open(t.Context(), dir)
				require.NoError(t, err)
				require.NoError(t, j.Close())
			})
		}
		all.Wait()
	}
}

// TestJournalCreatedBetweenReads creates the journal after another opening found
// an empty folder. That opening must not report missing entries.
func TestJournalCreatedBetweenReads(t *testing.T) {
	dir := t.TempDir()
	begun, complete := sqlite.LookBefore(t.Context(), dir, func() {
		j, err := sqlite.Open(t.Context(), dir)
		require.NoError(t, err)
		require.NoError(t, j.Close())
	})
	require.NoError(t, begun)
	require.NoError(t, complete)

	missing := t.TempDir()
	begun, _ = sqlite.LookBefore(t.Context(), missing, func() {
		require.NoError(t, os.WriteFile(filepath.Join(missing, "reserve"), nil, 0o600))
	})
	require.ErrorContains(t, begun, "its other files are present")
}
