package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileSystem names the file system of a folder. Failing is one that other
// machines share; weaker is one whose guarantees depend on its server.
func fileSystem(dir string) (kind string, is Health) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "unknown: " + err.Error(), Weaker
	}
	magic := uint32(s.Type) // 32 bits, signed on some systems
	switch magic {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4", Healthy
	case unix.XFS_SUPER_MAGIC:
		return "xfs", Healthy
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs", Healthy
	case unix.TMPFS_MAGIC:
		return "tmpfs, which a reboot empties", Healthy
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay", Healthy
	case unix.NFS_SUPER_MAGIC:
		return "nfs", Failing
	case 0xff534d42, 0xfe534d42:
		return "smb", Failing
	case unix.CEPH_SUPER_MAGIC:
		return "ceph", Failing
	case unix.V9FS_MAGIC:
		return "9p", Weaker
	case unix.FUSE_SUPER_MAGIC:
		return "fuse", Weaker
	default:
		return fmt.Sprintf("of type %#x", magic), Healthy
	}
}
