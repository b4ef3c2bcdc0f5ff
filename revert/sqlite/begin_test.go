package sqlite_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/sqlite"
)

// TestOpenTogether opens a journal that is not there yet many times at once:
// whoever makes it, all others wait until they see it whole.
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

// TestJournalMadeBetweenLooks: one opening looks at a folder that is empty, and another makes the
// journal before the first goes on. Nothing is missing then.
func TestJournalMadeBetweenLooks(t *testing.T) {
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
	require.ErrorContains(t, begun, "what belongs to one is beside it")
}
