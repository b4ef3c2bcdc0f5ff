//go:build !portable

package disk

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// statAt describes the file of a name below an open directory. If the name is
// one element, one call on the two cannot leave the directory, since it follows
// no link. It could reach the root of another mount, which it therefore
// refuses. A kernel that cannot report such a mount (before 5.8) walks.
func (w *kernelWalker) statAt(dir int, name string) (info Info, err error) {
	if !strings.Contains(name, "/") && name != "." {
		var raw unix.Statx_t
		err = interrupted(func() error {
			return unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS, &raw)
		})
		switch mounts := raw.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0; {
		case err != nil:
			return Info{}, walkError(err)
		case mounts && raw.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0:
			return Info{}, walkError(unix.EXDEV)
		case mounts && raw.Mask&unix.STATX_BASIC_STATS == unix.STATX_BASIC_STATS:
			return infoOfStatx(&raw), nil
		}
	}
	err = w.withAt(dir, name, toPin, func(fd int) error {
		info, err = statOf(fd)
		return err
	})
	return info, err
}

// infoOfStatx is infoOf for the newer call.
func infoOfStatx(raw *unix.Statx_t) Info {
	return Info{
		Type:   typeOfRaw(uint32(raw.Mode)),
		Perm:   permOfRaw(uint32(raw.Mode)),
		Size:   int64(raw.Size),
		Mtime:  time.Unix(raw.Mtime.Sec, int64(raw.Mtime.Nsec)).UTC(),
		Ctime:  time.Unix(raw.Ctime.Sec, int64(raw.Ctime.Nsec)).UTC(),
		Inode:  raw.Ino,
		Device: unix.Mkdev(raw.Dev_major, raw.Dev_minor),
		Links:  uint64(raw.Nlink),
		Owner:  Owner{Known: true, User: raw.Uid, Group: raw.Gid},
	}
}
