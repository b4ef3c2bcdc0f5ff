package sqlite_test

import (
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
