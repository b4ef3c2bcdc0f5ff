//go:build unix

package process

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock locks an open folder or file until it is closed or its process ends.
func lock(f *os.File, wait bool) error {
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// private refuses a folder that another user can write to, or has created in a
// shared place.
func private(dir string) error {
	var is unix.Stat_t
	if err := unix.Lstat(dir, &is); err != nil {
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if is.Mode&unix.S_IFMT != unix.S_IFDIR || is.Mode&0o022 != 0 || int(is.Uid) != os.Geteuid() {
		return errors.New("the folder must belong to this user, and only this user may write in it")
	}
	return nil
}

// isLocked reports whether somebody else holds the lock.
func isLocked(err error) bool { return errors.Is(err, unix.EWOULDBLOCK) }
