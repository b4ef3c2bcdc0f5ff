package disk

import (
	"io/fs"
	"time"
)

// PermMask covers the bits that Info.Perm carries and that Create, Mkdir and
// Chmod accept: read, write and execute, and setuid, setgid and sticky.
const PermMask = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// Type is the kind of a file. The zero value is no kind at all.
type Type uint8

// The types of files.
const (
	TypeFile  Type = iota + 1 // a regular file
	TypeDir                   // a directory
	TypeLink                  // a symbolic link
	TypeOther                 // a device, FIFO, socket or anything else
)

// String returns the type in one lower-case word, or "unknown" for the zero
// value.
func (t Type) String() string {
	switch t {
	case TypeFile:
		return "file"
	case TypeDir:
		return "dir"
	case TypeLink:
		return "link"
	case TypeOther:
		return "other"
	}
	return "unknown"
}

// Info describes one file. It is a plain value.
type Info struct {
	Name   string      // last element of the path; "." for the root itself
	Type   Type        // kind of the file
	Perm   fs.FileMode // bits of PermMask only, never a type bit
	Size   int64       // bytes; for a link the length of its target
	Mtime  time.Time   // time of the last content change, UTC
	Ctime  time.Time   // time of the last change of content or metadata, UTC; zero: unknown
	Inode  uint64      // file number, unique within Device
	Device uint64      // number of the file system
	Links  uint64      // number of names; more than one for hard links
	Owner  Owner       // user and group
}

// Features describes this platform and file system. True is a promise. False
// means that the operation may return ErrUnsupported, or may be weaker in the
// way its comment says.
type Features struct {
	Straight  bool // walks of this view follow no link at all
	Beneath   bool // the kernel keeps every walk beneath the root and on its mount
	Exchange  bool // Exchange is atomic
	NoReplace bool // RenameNoReplace is atomic
	Lease     bool // TryLease detects every writer; else it may miss some or be ErrUnsupported
	Xattrs    bool // extended attributes are kept
	DirSync   bool // SyncDir makes names durable; else it does nothing
	SyncAll   bool // SyncAll makes everything durable
}
