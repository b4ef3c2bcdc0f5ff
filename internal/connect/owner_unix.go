//go:build unix

package connect

import (
	"io/fs"
	"os"
	"syscall"
)

// sameOwner gives a new file the owner and group of the file that it replaces.
func sameOwner(path string, like fs.FileInfo) error {
	want, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if is, ok := info.Sys().(*syscall.Stat_t); ok && is.Uid == want.Uid && is.Gid == want.Gid {
		return nil
	}
	if err := os.Lchown(path, int(want.Uid), int(want.Gid)); err != nil {
		return err
	}
	return os.Chmod(path, like.Mode()) // the kernel clears mode bits when the owner changes
}
