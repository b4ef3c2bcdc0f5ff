package disk

import "errors"

// The conditions a caller may test for with errors.Is. Absent, existing and
// forbidden files are reported by the sentinels of io/fs, use after Close by
// fs.ErrClosed. Errors of a Root are *fs.PathError or *os.LinkError.
var (
	// ErrPath reports a name that is no clean relative path, refused before
	// the disk was asked anything.
	ErrPath = errors.New("not a clean relative path")

	// ErrEscape reports a walk that left the root: through a link, a mount
	// point, a magic link of /proc, or a chain of links without an end.
	ErrEscape = errors.New("path leaves its root")

	// ErrType reports a file of a kind that the operation does not act on,
	// such as opening a device or changing the mode of a link.
	ErrType = errors.New("wrong type of file")

	// ErrBusy reports that another process is in the way just now: it holds
	// the file open for writing, or moves the parents too fast to walk them.
	ErrBusy = errors.New("in use by another process")

	// ErrUnsupported reports that the platform or file system cannot do the
	// operation with the promised strength. Nothing weaker was done instead.
	ErrUnsupported = errors.New("not supported by this file system")
)
