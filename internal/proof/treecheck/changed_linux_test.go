package treecheck

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestChangedMeanwhile makes each change between two steps of Capture, and
// requires an error that names the path.
func TestChangedMeanwhile(t *testing.T) {
	const state = ": changed during the capture; capture again when no program writes to the tree"
	begin := func(t *testing.T, name string) (*capture, int, unix.Stat_t) {
		t.Chdir(t.TempDir())
		require.NoError(t, os.MkdirAll("d/e", 0o700))
		require.NoError(t, os.WriteFile("f", []byte("text"), 0o600))
		require.NoError(t, os.Symlink("f", "link"))
		fd, err := open(unix.AT_FDCWD, name, unix.O_PATH|unix.O_NOFOLLOW)
		require.NoError(t, err)
		st, err := stat(fd)
		require.NoError(t, err)
		c := &capture{seen: map[inode]inodeEntry{}, buffer: make([]byte, blockSize)}
		t.Cleanup(c.closeAll)
		return c, fd, st
	}
	t.Run("file shortened", func(t *testing.T) {
		c, fd, st := begin(t, "f")
		defer closeFD(fd)
		require.NoError(t, os.Truncate("f", 1))
		require.EqualError(t, c.describe(fd, &st, "f"), `treecheck: compare "f"`+state)
	})
	t.Run("mode", func(t *testing.T) {
		c, fd, st := begin(t, "f")
		defer closeFD(fd)
		require.NoError(t, os.Chmod("f", 0o640))
		require.EqualError(t, c.describe(fd, &st, "f"), `treecheck: compare "f"`+state)
	})
	t.Run("between two names", func(t *testing.T) {
		c, fd, _ := begin(t, "f")
		defer closeFD(fd)
		require.NoError(t, os.Link("f", "g"))
		st, err := stat(fd)
		require.NoError(t, err)
		require.NoError(t, c.describe(fd, &st, "f"))
		require.NoError(t, os.Chmod("f", 0o640))
		st, err = stat(fd)
		require.NoError(t, err)
		require.EqualError(t, c.describe(fd, &st, "g"), `treecheck: compare "g"`+state)
	})
	t.Run("directory moved", func(t *testing.T) {
		c, fd, st := begin(t, "d")
		c.push(fd, stateOf(&st).inode)
		e, err := open(fd, "e", unix.O_PATH)
		require.NoError(t, err)
		st, err = stat(e)
		require.NoError(t, err)
		c.push(e, stateOf(&st).inode)
		closeFD(c.levels[0].fd)
		c.levels[0].fd = -1
		require.NoError(t, os.Rename("d/e", "e"))
		require.EqualError(t, c.pop("d/e"), `treecheck: open the parent of "d/e"`+state)
	})
	t.Run("directory moved out of reach", func(t *testing.T) {
		c, fd, st := begin(t, "f")
		c.levels = []level{{fd: -1}, {fd: fd, inode: stateOf(&st).inode}}
		require.EqualError(t, c.pop("f"), `treecheck: open the parent of "f": not a directory`)
	})
	t.Run("symlink", func(t *testing.T) {
		_, fd, _ := begin(t, "link")
		defer closeFD(fd)
		_, err := readlink(fd, 0)
		require.ErrorIs(t, err, errChanged)
	})
	t.Run("bytes", func(t *testing.T) {
		_, fd, _ := begin(t, "f")
		defer closeFD(fd)
		file, err := open(unix.AT_FDCWD, "f", unix.O_RDONLY)
		require.NoError(t, err)
		defer closeFD(file)
		require.ErrorIs(t, newDigester(10, make([]byte, blockSize)).read(file, 0, 10), errChanged)
	})
}

// TestSized reads values that grow, and gives up on one that has no end.
func TestSized(t *testing.T) {
	for _, size := range []int{0, 1, 256, 257, 1 << 16, 1 << 20} {
		value, err := sized(func(b []byte) (int, error) {
			if len(b) < size {
				return -1, unix.ERANGE
			}
			return size, nil
		})
		require.NoError(t, err)
		require.Len(t, value, size)
	}
	_, err := sized(func([]byte) (int, error) { return -1, unix.ERANGE })
	require.ErrorIs(t, err, unix.ERANGE)
	interrupted := 0
	_, err = sized(func([]byte) (int, error) {
		if interrupted++; interrupted < 3 {
			return -1, unix.EINTR
		}
		return 0, nil
	})
	require.NoError(t, err)
}
