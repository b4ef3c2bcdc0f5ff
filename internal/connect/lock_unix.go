//go:build unix

package connect

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFolder waits for the exclusive lock of a folder among remit processes. It
// locks the folder itself, which leaves no file; the lock ends with its
// process.
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
