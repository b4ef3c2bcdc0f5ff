//go:build unix

package process

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// rawStat is what the system tells of a name.
type rawStat = unix.Stat_t

type timespec = unix.Timespec

const (
	noFollow = unix.O_NOFOLLOW // opens no link
	noWait   = unix.O_NONBLOCK // does not wait for the writer of a pipe

	knowsOwners = true
)

func stampOf(path string) (fileStamp, rawStat, error) {
	var is rawStat
	if err := unix.Lstat(path, &is); err != nil {
		return fileStamp{}, is, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return stampFrom(&is), is, nil
}

func stampFrom(is *rawStat) fileStamp {
	return fileStamp{ino: is.Ino, dev: uint64(is.Dev), mode: uint32(is.Mode), uid: is.Uid, gid: is.Gid, size: is.Size, mtime: is.Mtim, ctime: is.Ctim} //nolint:unconvert,gosec // other widths elsewhere
}

// with opens a file or folder and calls do.
func with(name string, do func(*os.File) error) error {
	f, err := os.OpenFile(name, os.O_RDONLY|noFollow|noWait, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}
