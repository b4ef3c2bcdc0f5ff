package connect

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// lockFolder waits for the exclusive lock of a folder among remit processes.
// The lock ends with its process. Windows cannot lock a folder, so a file
// represents it.
func lockFolder(folder string) (unlock func(), err error) {
	path := filepath.Join(os.TempDir(), "remit-connect-"+digest([]byte(folder))[:16]+".lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, private)
	if err != nil {
		return nil, &FileError{Path: path, Text: plain(err)}
	}
	if err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, new(windows.Overlapped)); err != nil {
		return nil, errors.Join(&FileError{Path: path, Text: "it cannot be locked: " + err.Error()}, f.Close())
	}
	return func() { _ = f.Close() }, nil
}
