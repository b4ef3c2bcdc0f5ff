//go:build !portable

package disk

import (
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// stat describes an open file. The caller sets the name.
func stat(file *os.File) (info Info, err error) {
	err = control(file, func(fd int) error {
		info, err = statOf(fd)
		return err
	})
	return info, err
}

// statOf is stat for a descriptor, also of a file opened with O_PATH.
func statOf(fd int) (Info, error) {
	var raw unix.Stat_t
	if err := unix.Fstat(fd, &raw); err != nil {
		return Info{}, err
	}
	return infoOf(&raw), nil
}

// creationTime returns the creation time of an open file's inode, in nanoseconds
// since 1970; 0 if the file system has none.
func creationTime(fd int) int64 {
	var raw unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &raw)
	if err != nil || raw.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return raw.Btime.Sec*1e9 + int64(raw.Btime.Nsec)
}

// infoOf converts the kernel's description. The conversions matter on
// architectures with narrower fields.
func infoOf(raw *unix.Stat_t) Info {
	return Info{
		Type:   typeOfRaw(raw.Mode),
		Perm:   permOfRaw(raw.Mode),
		Size:   raw.Size,
		Mtime:  time.Unix(int64(raw.Mtim.Sec), int64(raw.Mtim.Nsec)).UTC(),
		Ctime:  time.Unix(int64(raw.Ctim.Sec), int64(raw.Ctim.Nsec)).UTC(),
		Inode:  raw.Ino,
		Device: raw.Dev,
		Links:  uint64(raw.Nlink),
		Owner:  Owner{Known: true, User: raw.Uid, Group: raw.Gid},
	}
}

func typeOfRaw(mode uint32) Type {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return TypeFile
	case unix.S_IFDIR:
		return TypeDir
	case unix.S_IFLNK:
		return TypeLink
	}
	return TypeOther
}

func permOfRaw(mode uint32) fs.FileMode {
	perm := fs.FileMode(mode) & fs.ModePerm
	if mode&unix.S_ISUID != 0 {
		perm |= fs.ModeSetuid
	}
	if mode&unix.S_ISGID != 0 {
		perm |= fs.ModeSetgid
	}
	if mode&unix.S_ISVTX != 0 {
		perm |= fs.ModeSticky
	}
	return perm
}

func rawPerm(perm fs.FileMode) uint32 {
	raw := uint32(perm & fs.ModePerm)
	if perm&fs.ModeSetuid != 0 {
		raw |= unix.S_ISUID
	}
	if perm&fs.ModeSetgid != 0 {
		raw |= unix.S_ISGID
	}
	if perm&fs.ModeSticky != 0 {
		raw |= unix.S_ISVTX
	}
	return raw
}
