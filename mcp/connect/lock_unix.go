//go:build unix

package connect

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock waits until nobody else connects or disconnects: what is planned rests on the records of all clients. The folder itself is
// locked, so that nothing is left of it, and whoever dies lets go.
func (p Place) lock() (unlock func(), err error) {
	if err := folder(p.State); err != nil {
		return nil, err
	}
	dir, err := os.Open(p.State)
	if err != nil {
		return nil, &FileError{Path: p.State, Text: plain(err)}
	}
	for {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(&FileError{Path: p.State, Text: "it cannot be locked: " + err.Error()}, dir.Close())
	}
	return func() { _ = dir.Close() }, nil
}
