//go:build linux && !portable

package disk

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestDescriptorOutlivesItsUse closes a descriptor in the middle of its use. The
// number belongs to no other file before the use has ended.
func TestDescriptorOutlivesItsUse(t *testing.T) {
	fd, err := unix.Open(t.TempDir(), unix.O_PATH|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	d := descriptor{fd: fd}
	require.NoError(t, d.use(func(fd int) error {
		require.NoError(t, d.close())
		require.ErrorIs(t, d.close(), fs.ErrClosed)
		require.ErrorIs(t, d.use(func(int) error { return nil }), fs.ErrClosed)
		other, err := os.Open(os.DevNull)
		require.NoError(t, err)
		require.NotEqual(t, uintptr(fd), other.Fd())
		require.NoError(t, other.Close())
		_, err = statOf(fd)
		return err
	}))
	_, err = statOf(fd)
	require.ErrorIs(t, err, unix.EBADF)
	require.ErrorIs(t, d.use(func(int) error { return nil }), fs.ErrClosed)
}
