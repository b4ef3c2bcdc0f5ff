//go:build unix

package login

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// try takes the lock of an open file. It also excludes other holders in this
// process.
func try(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return errHeld
		default:
			return err
		}
	}
}
