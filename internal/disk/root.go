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
	// Open opens an existing regular file for reading. A final link that
	// stays beneath the root is followed. Anything but a regular file is
	// ErrType, and opening one never waits.
	Open(name string) (File, error)

	// Create makes a new file, open for writing, with exactly the bits of
	// perm, whatever the umask. An existing name, also a dangling link, is
	// fs.ErrExist. If setting the bits fails the empty file stays. The
	// kernel drops setuid and setgid on a later write: Chmod after it.
	Create(name string, perm fs.FileMode) (File, error)

	// Lstat describes what name is, not what it points to. "." is the root.
	Lstat(name string) (Info, error)

	// ReadDir describes the entries of a directory, sorted by name as bytes.
	// "." is the root. Entries that vanish meanwhile are left out. A name on
	// disk may be one that CheckPath refuses.
	ReadDir(name string) ([]Info, error)

	// Readlink returns the target of a link exactly as it is stored.
	Readlink(name string) (string, error)

	// Symlink makes a link. The target is stored as it is and not judged,
	// except that it must not be empty or hold a NUL, which is ErrPath.
	Symlink(target, name string) error

	// Mkdir makes a directory with exactly the bits of perm.
	Mkdir(name string, perm fs.FileMode) error

	// Chmod gives a file or directory exactly the bits of perm. A final link
	// is ErrType. "." is the root.
	Chmod(name string, perm fs.FileMode) error

	// SetMtime sets the time of the last content change and leaves the
	// access time alone. A final link gets the time itself. "." is the root.
	SetMtime(name string, t time.Time) error

	// Chown gives a file, a directory or a link itself to a user and a group.
	// The kernel drops setuid, setgid and security.capability of a file by it:
	// Chmod and SetXattr after it. An owner that is not known is
	// ErrUnsupported. "." is the root.
	Chown(name string, o Owner) error

	// Xattrs returns the extended attributes that CheckXattr accepts and that
	// this process can read, under their full names. Access control lists are
	// among them. It is empty for links and other files that cannot have any,
	// and where the file system keeps none. "." is the root, here and in the
	// two methods that follow.
	Xattrs(name string) (map[string][]byte, error)

	// SetXattr sets one attribute. A key that CheckXattr refuses is ErrPath, a
	// link is ErrType. The list XattrAccess is also the permission bits, and
	// Chmod changes that list.
	SetXattr(name, key string, value []byte) error

	// RemoveXattr removes one attribute. An absent one is fs.ErrNotExist.
	RemoveXattr(name, key string) error

	// Link gives a file another name, which must be free: fs.ErrExist
	// otherwise. No final link is followed; anything but a regular file is
	// ErrType.
	Link(name, as string) error

	// Remove unlinks a file, a link or an empty directory. A directory with
	// entries is fs.ErrExist.
	Remove(name string) error

	// Exchange swaps what two names stand for, of whatever type, in one
	// step. fs.ErrNotExist when either is absent; ErrPath when one lies
	// inside the other. It is ErrUnsupported where one step is not possible.
	Exchange(a, b string) error

	// RenameNoReplace moves a file, link or directory, in one step, to a
	// name that must be free: fs.ErrExist otherwise; ErrPath when it lies inside the
	// thing moved. It is ErrUnsupported where one step is not possible.
	RenameNoReplace(from, to string) error

	// SyncDir makes the entries of a directory durable: what was created in,
	// removed from and renamed within it. "." is the root. A failure is
	// final: the state on disk is unknown and a retry proves nothing.
	SyncDir(name string) error

	// SyncAll makes everything durable that was written anywhere on the file
	// system of the root, content and names, by whomever: what it costs is not
	// only its caller's. It is ErrUnsupported where one step is not possible.
	SyncAll() error

	// TryLease returns nil when no process, this one included, holds the inode
	// open for writing or mapped writable, ErrBusy when one does, and nil
	// for links and directories, which nobody can open for writing. It needs
	// read access and ownership of the file and describes one moment: the
	// answer lasts only for an inode that others can no longer reach. A
	// writer that opens the file during the check is delayed by it. Without
	// Features.Lease it may overlook a writer.
	TryLease(name string) error

	// Identity returns what tells the root itself from other folders, as it was
	// when it was opened.
	Identity() Identity

	// Path returns where the root is now on this host, for those who hand it
	// to the system by name. It fails where nothing can tell, or where another
	// directory is there by now. It is no authority: compare Identity.
	Path() (string, error)

	// Self says what this process can give to what it makes here.
	Self() Self

	// Features says which of these promises hold on this root.
	Features() Features

	// Close gives the authority up. Files opened through the root live on.
	Close() error
}

// File is one open regular file. Files from Open refuse Write, files from
// Create refuse Read. It is not safe for concurrent reads or writes.
type File interface {
	io.Reader
	io.Writer

	// Skip leaves n bytes of a new file out, which then read as zeros and take no
	// room where the file system knows holes.
	Skip(n int64) error

	// Sync makes the content durable, but not the name. A failure is final:
	// the content on disk is unknown and a retry proves nothing.
	Sync() error

	// Stat describes the open file. Its Name is the last element it was
	// opened under.
	Stat() (Info, error)

	// Close gives the file back. It does not make anything durable.
	Close() error
}

// OpenRoot opens an existing directory by a path of the host. This is the one
// place where such a path is taken, links in it are followed: it belongs to
// whoever configures the runtime, never to a caller of a tool.
func OpenRoot(dir string) (Root, error) {
	return openRoot(dir)
}

// WithoutLinks returns a view of a root whose walks follow no symbolic link at all,
// not even one that stays beneath: ErrEscape. Who was permitted a path is not
// led to another one by whoever replaces a directory between look and use. It is
// the root itself where Features().Beneath is false: there a link that appears
// between the two is followed, though never out of the root. The same root gives
// the same view, which ends with it and is not closed.
func WithoutLinks(r Root) Root {
	if s, ok := r.(interface{ WithoutLinks() Root }); ok {
		return s.WithoutLinks()
	}
	return r
}
