package connect

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// lock waits until nobody else connects or disconnects: what is planned rests on the records of all clients. Whoever dies lets go.
func (p Place) lock() (unlock func(), err error) {
	if err := folder(p.State); err != nil {
		return nil, err
	}
	path := filepath.Join(p.State, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, private)
	if err != nil {
		return nil, &FileError{Path: path, Text: plain(err)}
	}
	if err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, new(windows.Overlapped)); err != nil {
		return nil, errors.Join(&FileError{Path: path, Text: "it cannot be locked: " + err.Error()}, f.Close())
	}
	return func() { _ = f.Close() }, nil
}
