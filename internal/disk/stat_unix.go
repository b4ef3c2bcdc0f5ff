//go:build unix && (portable || !linux)

package disk

import (
	"io/fs"
	"os"
	"syscall"
)

const (
	// nonBlocking makes opening a FIFO not wait for a writer.
	nonBlocking = syscall.O_NONBLOCK

	syncsDirs = true
)

// stat describes an open file. The caller sets the name.
func stat(file *os.File) (Info, error) {
	found, err := file.Stat()
	if err != nil {
		return Info{}, err
	}
	return infoOf(found), nil
}

// complete adds the fields of the platform's record.
func (r *portableRoot) complete(_ string, found fs.FileInfo) (Info, error) {
	return infoOf(found), nil
}

func infoOf(found fs.FileInfo) Info {
	info := Info{
		Type:  typeOf(found.Mode()),
		Perm:  found.Mode() & PermMask,
		Size:  found.Size(),
		Mtime: found.ModTime().UTC(),
	}
	if raw, ok := found.Sys().(*syscall.Stat_t); ok {
		info.Inode, info.Device, info.Links = uint64(raw.Ino), uint64(raw.Dev), uint64(raw.Nlink)
		info.Owner = Owner{Known: true, User: raw.Uid, Group: raw.Gid}
	}
	return info
}
