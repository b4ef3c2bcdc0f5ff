//go:build !portable

package disk_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
)

// TestPeek checks that Peek equals Lstat, and returns another inode for the
// target of a link.
func TestPeek(t *testing.T) {
	eachWalker(t, func(t *testing.T, open func(*testing.T, string) disk.Root) {
		dir, outside := t.TempDir(), t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
		require.NoError(t, os.Mkdir(filepath.Join(outside, "b"), 0o755))
		require.NoError(t, os.Symlink("a", filepath.Join(dir, "link")))
		r := open(t, dir)
		peeks, ok := r.(interface {
			Peek(name string) (disk.Info, error)
		})
		require.True(t, ok)
		peek := peeks.Peek
		for _, name := range []string{".", "a", "a/b", "link"} {
			want, err := r.Lstat(name)
			require.NoError(t, err)
			got, err := peek(name)
			require.NoError(t, err)
			require.Equal(t, want, got, name)
		}
		_, err := peek("none")
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = peek("../x")
		require.ErrorIs(t, err, disk.ErrPath)
		was, err := r.Lstat("a/b")
		require.NoError(t, err)
		require.NoError(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "c")))
		require.NoError(t, os.Symlink(outside, filepath.Join(dir, "a")))
		is, err := peek("a/b")
		if err == nil {
			require.NotEqual(t, was.Inode, is.Inode)
		}
		require.NoError(t, r.Close())
		_, err = peek("c")
		require.ErrorIs(t, err, fs.ErrClosed)
	})
}
