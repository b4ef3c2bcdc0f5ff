// Package treecheck describes a tree of files completely and compares two
// descriptions. Tests use the package to judge code that restores files.
//
// The package imports no other package of this module, so a mistake in the code
// under test cannot hide itself. Capture works on Linux only.
//
// A description leaves out inode numbers, access times, change times, birth
// times, inode flags (chattr) and project quotas.
package treecheck

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// Kind is the type of an entry.
type Kind string

// The types of entries. Capture knows no other type.
const (
	Regular     Kind = "regular"
	Directory   Kind = "directory"
	Symlink     Kind = "symlink"
	FIFO        Kind = "fifo"
	Socket      Kind = "socket"
	CharDevice  Kind = "char device"
	BlockDevice Kind = "block device"
)

// Tree is the description of a tree. The zero Tree contains no entry.
type Tree struct {
	// Entries contains the root first. Each directory stands before its
	// entries, which stand in the byte order of their names.
	Entries []Entry
}

// Entry describes one path of a tree.
type Entry struct {
	// Path is relative to the root of the tree and contains the raw bytes of
	// the names, separated by slashes. The root has the path ".".
	Path string
	Type Kind
	// Mode contains the permission bits and the setuid, setgid and sticky bits.
	Mode     uint32
	UID, GID uint32
	// Size and Digest describe the bytes of a regular file.
	Size   int64
	Digest Digest
	// Data is the number of bytes of a regular file outside of holes, by
	// SEEK_DATA and SEEK_HOLE.
	Data int64
	// Allocated is the number of bytes that a regular file has on disk.
	Allocated int64
	// Target is the target of a symlink.
	Target string
	Mtime  Time
	// Major and Minor are the numbers of a device.
	Major, Minor uint32
	// Xattrs contains all readable extended attributes in the order of their
	// names, with the ACLs.
	Xattrs []Attribute
	// Links is nil for a directory and for an inode with one name. The entries
	// of one inode share a pointer.
	Links *LinkGroup
}

// Digest identifies the content of a file by SHA-256. Equal contents have equal
// digests, with holes or without. The digest covers the size and, for each block
// that contains a byte other than zero, the offset of the block and all bytes in
// the block. It is not the sum that sha256sum prints, because hashing the zeros
// of a hole takes seconds for each 10 GiB.
type Digest [32]byte

// Time is a point in time in seconds and nanoseconds since 1970. Unlike an int64
// of nanoseconds, a Time holds every time that a file can have.
type Time struct{ Sec, Nsec int64 }

func (t Time) String() string { return fmt.Sprintf("%d.%09d", t.Sec, t.Nsec) }

// Attribute is an extended attribute. Large values are kept as a digest.
type Attribute struct {
	Name string
	// Value is the raw value if Size is at most 256, and else its SHA-256.
	Value string
	// Size is the length of the value in bytes.
	Size int
}

// LinkGroup says which names an inode with several names has.
type LinkGroup struct {
	// Count is the number of all names, inside and outside of the tree.
	Count uint64
	// Paths are the names inside the tree, in the order of the entries.
	Paths []string
}

const (
	aclAccess  = "system.posix_acl_access"
	aclDefault = "system.posix_acl_default"

	maxXattr = 256 // bytes of a value that is kept as it is
	maxNames = 16  // names of a link group in a message
)

func (x Attribute) String() string {
	switch {
	case x.Size > maxXattr:
		return fmt.Sprintf("%d bytes, sha256 %s", x.Size, hex.EncodeToString([]byte(x.Value)))
	case x.isACL():
		return aclText(x.Value)
	default:
		return fmt.Sprintf("%q", x.Value)
	}
}

func (x Attribute) isACL() bool { return x.Name == aclAccess || x.Name == aclDefault }

func (l *LinkGroup) String() string {
	if l == nil {
		return "1 name"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d names, %d outside of the tree:", l.Count, l.Count-uint64(len(l.Paths)))
	for i, p := range l.Paths {
		if i == maxNames {
			fmt.Fprintf(&b, " and %d more", len(l.Paths)-i)
			break
		}
		fmt.Fprintf(&b, " %q", p)
	}
	return b.String()
}
