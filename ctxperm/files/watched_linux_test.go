package files_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/watch"
	"github.com/remit-dev/remit/revert/journal"
)

// TestSwapsNeedNoWalk checks that the changes of this process are no reason for
// an index of the folder to look at all files, although a staged name comes and
// goes with each.
func TestSwapsNeedNoWalk(t *testing.T) {
	for name, s := range swaps() {
		w := newTestEnv(t)
		w.createFiles()
		tree, err := watch.New(w.dir)
		require.NoError(t, err)
		defer tree.Close()
		drain := func() watch.Dirty {
			d := watch.Dirty{Names: map[string]bool{}, Opened: map[string]bool{}, Links: map[uint64]bool{}}
			require.NoError(t, tree.Drain(&d))
			return d
		}
		drain()
		for range 100 { // most often, the tree looks before the name is gone
			w.journal = journal.Memory() // a call of its own
			w.changes(s.do)
			d := drain()
			require.False(t, d.Unsure, name)
			require.Contains(t, d.Names, s.file)
			if name == "put" {
				require.NoError(t, os.Remove(filepath.Join(w.dir, s.file)))
			} else {
				w.put(s.file, "b", 0o600)
			}
			drain()
		}
	}
}
