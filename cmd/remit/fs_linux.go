package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileSystem names the file system of a folder. Failing is one that other
// machines share; weaker is one whose guarantees depend on its server.
func fileSystem(dir string) (kind string, is health) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "unknown: " + err.Error(), weaker
	}
	magic := uint32(s.Type) // 32 bits, signed on some systems
	switch magic {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4", healthy
	case unix.XFS_SUPER_MAGIC:
		return "xfs", healthy
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs", healthy
	case unix.TMPFS_MAGIC:
		return "tmpfs, which a reboot empties", healthy
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay", healthy
	case unix.NFS_SUPER_MAGIC:
		return "nfs", failing
	case 0xff534d42, 0xfe534d42:
		return "smb", failing
	case unix.CEPH_SUPER_MAGIC:
		return "ceph", failing
	case unix.V9FS_MAGIC:
		return "9p", weaker
	case unix.FUSE_SUPER_MAGIC:
		return "fuse", weaker
	default:
		return fmt.Sprintf("of type %#x", magic), healthy
	}
}
