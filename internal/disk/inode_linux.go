//go:build !portable

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// chmod sets the bits of a pinned inode and verifies them: the kernel silently
// drops setgid if the process is not in the group, and some file systems keep
// no bits.
func chmod(pin int, perm fs.FileMode) error {
	err := unix.Fchmodat(pin, "", rawPerm(perm), unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = unix.Chmod(procPath(pin), rawPerm(perm))
	}
	if err != nil {
		return err
	}
	return stuck(pin, perm)
}

func stuck(fd int, perm fs.FileMode) error {
	info, err := statOf(fd)
	if err == nil && info.Perm != perm {
		err = fmt.Errorf("%w: mode is %v, not %v", ErrUnsupported, info.Perm, perm)
	}
	return err
}

func chown(pin int, o Owner) error {
	return unix.Fchownat(pin, "", int(o.User), int(o.Group), unix.AT_EMPTY_PATH)
}

func fsync(fd int) error { return interrupted(func() error { return unix.Fsync(fd) }) }

// setMtime sets the time of an inode, also of one opened with O_PATH. Kernels
// before 5.8 refuse the empty path here.
func setMtime(pin int, t time.Time) error {
	mtime, err := unix.TimeToTimespec(t)
	if err != nil {
		return err
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, mtime}
	err = unix.UtimesNanoAt(pin, "", times, unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EINVAL) {
		err = unix.UtimesNanoAt(unix.AT_FDCWD, procPath(pin), times, 0)
	}
	return err
}

// procPath returns the path by which old kernels reach a pinned inode. It
// contains only a number, and leads to that inode, not along a path.
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// featuresOf knows the file systems on which the features were tested. The
// kernel offers no test that leaves nothing in the folder. On an overlay, a
// lease misses a writer that mapped the file and closed it.
func featuresOf(root int) Features {
	var raw unix.Statfs_t
	err := unix.Fstatfs(root, &raw)
	known := err == nil && tried(int64(raw.Type))
	return Features{
		Exchange:  known,
		NoReplace: known,
		Lease:     known && raw.Type != unix.OVERLAYFS_SUPER_MAGIC,
		DirSync:   known,
		SyncAll:   known,
		Xattrs:    keepsXattrs(root),
	}
}

func tried(fsType int64) bool {
	switch fsType {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC,
		unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}
