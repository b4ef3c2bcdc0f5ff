package process

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ownerOf says to whom an open file belongs.
func ownerOf(f io.ReadCloser) (owner, bool) {
	var is unix.Stat_t
	file, ok := f.(*os.File)
	if !ok || unix.Fstat(int(file.Fd()), &is) != nil {
		return owner{}, false
	}
	return owner{int(is.Uid), int(is.Gid)}, true
}

// ownerAt says to whom what is at a path belongs.
func ownerAt(path string) (owner, bool) {
	var is unix.Stat_t
	err := unix.Lstat(path, &is)
	return owner{int(is.Uid), int(is.Gid)}, err == nil
}
