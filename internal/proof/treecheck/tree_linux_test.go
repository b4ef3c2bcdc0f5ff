package treecheck_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/proof/treecheck"
)

// capture describes a tree, and requires that a second description is equal.
func capture(t *testing.T, dir string) treecheck.Tree {
	t.Helper()
	tree, err := treecheck.Capture(dir)
	require.NoError(t, err)
	again, err := treecheck.Capture(dir)
	require.NoError(t, err)
	require.Empty(t, treecheck.Compare(tree, again))
	// A file system may allocate blocks late.
	for i := range again.Entries {
		again.Entries[i].Allocated = tree.Entries[i].Allocated
	}
	require.Equal(t, tree, again)
	return tree
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// aclOf returns the ACL user::rw-,user:ID:PERM,group::r--,mask::PERM,other::--- as
// the kernel stores it.
func aclOf(id uint32, perm uint16) []byte {
	raw := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 6, ^uint32(0)}, {2, perm, id}, {4, 4, ^uint32(0)}, {0x10, perm, ^uint32(0)}, {0x20, 0, ^uint32(0)}} {
		raw = binary.LittleEndian.AppendUint16(raw, e.tag)
		raw = binary.LittleEndian.AppendUint16(raw, e.perm)
		raw = binary.LittleEndian.AppendUint32(raw, e.id)
	}
	return raw
}

// able says what the file system and the user of a test can do.
type able struct{ xattrs, acls, owner, devices, holes, allocates bool }

// abilities tries on files that it removes again.
func abilities(t *testing.T) able {
	t.Helper()
	dir := t.TempDir()
	file, device := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, file, "x")
	can := able{
		xattrs:  unix.Setxattr(file, "user.treecheck", []byte("x"), 0) == nil,
		acls:    unix.Setxattr(file, "system.posix_acl_access", aclOf(1, 4), 0) == nil,
		devices: unix.Mknod(device, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) == nil,
		owner:   os.Lchown(file, 12345, 12345) == nil,
	}
	require.NoError(t, os.Truncate(file, 1<<20))
	tree, err := treecheck.Capture(dir)
	require.NoError(t, err)
	can.holes = tree.Entries[1].Data < 1<<20
	can.allocates = can.holes && allocate(file, 1<<20) == nil
	require.NoError(t, os.WriteFile(file, make([]byte, 1<<20), 0o600)) // a file system that compresses keeps holes only
	tree, err = treecheck.Capture(dir)
	require.NoError(t, err)
	can.holes = can.holes && tree.Entries[1].Data == 1<<20
	return can
}

// times returns what sets the times of paths back to what they are now.
func times(t *testing.T, paths ...string) (restore func()) {
	t.Helper()
	stats := make([]unix.Stat_t, len(paths))
	missing := make([]bool, len(paths))
	for i, p := range paths {
		err := unix.Lstat(p, &stats[i])
		missing[i] = errors.Is(err, unix.ENOENT)
		require.True(t, err == nil || missing[i], "%v", err)
	}
	return func() {
		for i, p := range paths {
			if missing[i] {
				continue
			}
			err := unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{stats[i].Atim, stats[i].Mtim}, unix.AT_SYMLINK_NOFOLLOW)
			if !errors.Is(err, unix.ENOENT) {
				require.NoError(t, err)
			}
		}
	}
}

var someTime = time.Unix(1_600_000_000, 123_456_789)

func setTime(t *testing.T, path string, at time.Time) {
	t.Helper()
	ts := unix.NsecToTimespec(at.UnixNano())
	require.NoError(t, unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW))
}

// short drops the values of differences.
func short(found []treecheck.Difference) (out []treecheck.Difference) {
	for _, d := range found {
		out = append(out, treecheck.Difference{Path: d.Path, Field: d.Field, Name: d.Name})
	}
	return out
}
