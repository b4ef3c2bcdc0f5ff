//go:build unix

package sqlite

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// flock belongs to the open file, not to the process like a lock of fcntl. It
// also excludes a second opening in this process, and closing another
// descriptor of the file does not release it.

func lockExclusive(f *os.File) error { return flock(f, unix.LOCK_EX) }

func lockShared(f *os.File) error { return flock(f, unix.LOCK_SH) }

func unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLocked
		case err != nil:
			return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		default:
			return nil
		}
	}
}

// removeLock removes the lock file of a dead owner, while it holds the lock. So
// a file that a new owner has just created stays, or is gone before that owner
// checks it.
func removeLock(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return ignoreMissing(err)
	}
	err = lockShared(f)
	switch {
	case errors.Is(err, errLocked):
		err = nil // not dead after all
	case err == nil:
		err = ignoreMissing(os.Remove(path))
	}
	return errors.Join(err, f.Close())
}

// namesOf returns the number of names of a file.
func namesOf(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // other widths elsewhere
	}
	return 1
}
