//go:build unix

package hook

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks a file until it is closed or its process ends.
func tryLock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errRunning
	}
	return err
}

// private refuses a folder that others can use: they could put a socket of
// theirs in it.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s: mode %v; it must be a folder of mode 0700", dir, info.Mode())
	}
	return nil
}
