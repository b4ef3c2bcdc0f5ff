package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate allocates space for a file without writing to it.
func allocate(f *os.File, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return errors.ErrUnsupported
		default:
			return err
		}
	}
}
