package sqlite

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// minSpace is less space than any write of a journal needs.
const minSpace = 64 << 10

// spaceProblem returns why the file system of a folder cannot be written, or "" if no
// reason is visible.
func spaceProblem(dir string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return ""
	}
	left := fs.Bavail
	if os.Geteuid() == 0 {
		left = fs.Bfree
	}
	switch {
	case fs.Flags&unix.ST_RDONLY != 0:
		return fmt.Sprintf("the file system of %s is read-only: make it writable (mount -o remount,rw), or copy the folder to another one and name that", dir)
	case fs.Files > 0 && fs.Ffree == 0:
		return fmt.Sprintf("the file system of %s has no inodes left: remove files or folders there", dir)
	case left*uint64(fs.Bsize) < minSpace:
		return fmt.Sprintf("the file system of %s is full, no space left: remove or move files there", dir)
	}
	return ""
}
