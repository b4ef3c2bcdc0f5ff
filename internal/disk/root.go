package disk

import (
	"io"
	"io/fs"
	"time"
)

// Root is one open directory and the authority over what lies beneath it.
//
// Names are as CheckPath accepts them; where "." is allowed the method says
// so. Every method is safe for concurrent use, makes no promise about order
// between concurrent calls, and fails with fs.ErrClosed after Close. Nothing
// is durable before Sync on the file and SyncDir on its directory, both.
type Root interface {
	// Open opens an existing regular file for reading. It follows a final link
	// that stays beneath the root. For another type it returns ErrType, and it
	// never waits.
	Open(name string) (File, error)

	// Create creates a new file, open for writing, with exactly the bits of
	// perm, independent of the umask. For an existing name, also a dangling
	// link, it returns fs.ErrExist. If setting the bits fails, the empty file
	// stays. The kernel drops setuid and setgid on a later write: call Chmod
	// after it.
	Create(name string, perm fs.FileMode) (File, error)

	// Lstat describes the name itself, not the target of a link. "." is the
	// root.
	Lstat(name string) (Info, error)

	// ReadDir describes the entries of a directory, sorted by name as bytes.
	// "." is the root. It skips entries that vanish meanwhile. CheckPath may
	// reject a name on disk.
	ReadDir(name string) ([]Info, error)

	// Readlink returns the target of a link exactly as it is stored.
	Readlink(name string) (string, error)

	// Symlink creates a link. It stores the target unchecked, but returns
	// ErrPath if the target is empty or contains a NUL.
	Symlink(target, name string) error

	// Mkdir creates a directory with exactly the bits of perm.
	Mkdir(name string, perm fs.FileMode) error

	// Chmod sets exactly the bits of perm on a file or directory. A final link
	// is ErrType. "." is the root.
	Chmod(name string, perm fs.FileMode) error

	// SetMtime sets the time of the last content change and not the access
	// time. For a final link it sets the time of the link. "." is the root.
	SetMtime(name string, t time.Time) error

	// Chown sets the user and the group of a file, a directory or a link
	// itself. The kernel then drops setuid, setgid and security.capability of a
	// file: call Chmod and SetXattr after it. An unknown owner is
	// ErrUnsupported. "." is the root.
	Chown(name string, o Owner) error

	// Xattrs returns the extended attributes that CheckXattr accepts and that
	// this process can read, under their full names. Access control lists are
	// among them. It is empty for links and other files that cannot have any,
	// and if the file system has none. "." is the root, here and in the two
	// methods that follow.
	Xattrs(name string) (map[string][]byte, error)

	// SetXattr sets one attribute. For a key that CheckXattr rejects it returns
	// ErrPath, for a link ErrType. The list XattrAccess also contains the
	// permission bits, and Chmod changes that list.
	SetXattr(name, key string, value []byte) error

	// RemoveXattr removes one attribute. An absent one is fs.ErrNotExist.
	RemoveXattr(name, key string) error

	// Link gives a file another name. For an existing name it returns
	// fs.ErrExist. It follows no final link. For another type than a regular
	// file it returns ErrType.
	Link(name, as string) error

	// Remove unlinks a file, a link or an empty directory. A directory with
	// entries is fs.ErrExist.
	Remove(name string) error

	// Exchange swaps the files of two names, of any types, atomically. It
	// returns fs.ErrNotExist if either is absent, ErrPath if one lies inside
	// the other, and ErrUnsupported if an atomic swap is not possible.
	Exchange(a, b string) error

	// RenameNoReplace moves a file, link or directory atomically. For an
	// existing name it returns fs.ErrExist, and ErrPath if the new name lies
	// inside the moved directory. It returns ErrUnsupported if an atomic move
	// is not possible.
	RenameNoReplace(from, to string) error

	// SyncDir makes the entries of a directory durable: creations, removals and
	// renames in it. "." is the root. A failure is final: the state on disk is
	// unknown and a retry proves nothing.
	SyncDir(name string) error

	// SyncAll makes all writes on the file system of the root durable, content
	// and names, by every process: so its cost does not depend on its caller
	// alone. It returns ErrUnsupported if there is no such call.
	SyncAll() error

	// TryLease returns nil if no process, this one included, holds the inode
	// open for writing or mapped writable, and ErrBusy otherwise. For links and
	// directories, which no process can open for writing, it returns nil. It
	// needs read access and ownership of the file. The result describes one
	// moment: it stays true only for an inode that others can no longer reach.
	// The check delays a writer that opens the file during it. Without
	// Features.Lease it may miss a writer.
	TryLease(name string) error

	// Identity returns the identity of the root when it was opened.
	Identity() Identity

	// Path returns the current host path of the root, for callers that pass it
	// to the system by name. It returns an error if the path is unknown, or if
	// another directory is there now. It is no authority: compare Identity.
	Path() (string, error)

	// Self returns the owners and attributes that this process can set here.
	Self() Self

	// Features returns which of these promises hold on this root.
	Features() Features

	// Close ends the authority. Files opened through the root stay open.
	Close() error
}

// File is one open regular file. Files from Open refuse Write, files from
// Create refuse Read. It is not safe for concurrent use.
type File interface {
	io.Reader
	io.Writer

	// Skip leaves out n bytes of a new file. They read as zeros and occupy no
	// space if the file system supports holes.
	Skip(n int64) error

	// Sync makes the content durable, but not the name. A failure is final:
	// the content on disk is unknown and a retry proves nothing.
	Sync() error

	// Stat describes the open file. Its Name is the last element it was
	// opened under.
	Stat() (Info, error)

	// Close closes the file. It does not make anything durable.
	Close() error
}

// FolderPinner is a Root that can keep a directory open, for a sequence of
// operations on its entries.
type FolderPinner interface {
	// PinFolder returns a view of the root. It resolves the directory and the
	// names in it from one open descriptor, and all other names as the root
	// does. So its operations act on the same directory, even if another
	// process moves it meanwhile: then they act as if the move came last. The
	// name is walked only once, so a caller must not keep the view while it
	// waits for anything but the disk. The view needs its own Close, after its
	// last operation. "." is the root.
	PinFolder(name string) (Root, error)
}

// Reopener is a Root that can open a file that it has described, without
// another description of the name.
type Reopener interface {
	// Reopen is Open for the regular file that Lstat has just described. If the
	// name leads to another file by now, or the file has another size or time,
	// it returns ErrBusy. For another type it returns ErrType.
	Reopen(name string, was Info) (OpenMetadata, error)
}

// OpenMetadata is the part of Root that some files offer for their own inode,
// under whatever name it is: without another walk, and without the question
// whether the name still leads to it. The methods do what those of Root do.
type OpenMetadata interface {
	File

	TryLease() error // only for a file from Open
	Xattrs() (map[string][]byte, error)
	SetXattr(key string, value []byte) error
	RemoveXattr(key string) error
	Chmod(perm fs.FileMode) error
	Chown(o Owner) error
	SetMtime(t time.Time) error
}

// OpenRoot opens an existing directory by a host path. Only this function
// accepts such a path, and it follows links in it. The path must come from the
// configuration of the runtime, never from a caller of a tool.
func OpenRoot(dir string) (Root, error) {
	return openRoot(dir)
}

// WithoutLinks returns a view of a root whose walks follow no symbolic link at
// all, not even one that stays beneath: ErrEscape. So a process that replaces a
// directory between check and use cannot redirect a permitted path. The view is
// the root itself if Features().Beneath is false: there a walk follows a link
// that appears in between, though never out of the root. One root always
// returns the same view, which ends with the root and is not closed.
func WithoutLinks(r Root) Root {
	if s, ok := r.(interface{ WithoutLinks() Root }); ok {
		return s.WithoutLinks()
	}
	return r
}
