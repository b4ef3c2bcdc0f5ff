//go:build unix

package connect

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFolder waits until nobody else of remit is at a folder. The folder itself is locked, so that nothing is left of it, and whoever
// dies lets go.
func lockFolder(path string) (unlock func(), err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, &FileError{Path: path, Text: plain(err)}
	}
	for {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(&FileError{Path: path, Text: "it cannot be locked: " + err.Error()}, dir.Close())
	}
	return func() { _ = dir.Close() }, nil
}
