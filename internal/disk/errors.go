package disk

import "errors"

// The errors that a caller may test for with errors.Is. The sentinels of io/fs
// report absent, existing and forbidden files, and fs.ErrClosed a use after
// Close. Errors of a Root are *fs.PathError or *os.LinkError.
var (
	// ErrPath reports a name that is not a clean relative path, rejected before
	// any access to the disk.
	ErrPath = errors.New("not a clean relative path")

	// ErrEscape reports a walk that left the root: through a link, a mount
	// point, a magic link of /proc, or a chain of links without an end.
	ErrEscape = errors.New("path leaves its root")

	// ErrType reports a file of a type that the operation does not support,
	// such as opening a device or changing the mode of a link.
	ErrType = errors.New("wrong type of file")

	// ErrBusy reports interference by another process: it holds the file open
	// for writing, or moves the parents too fast to walk them.
	ErrBusy = errors.New("in use by another process")

	// ErrUnsupported reports that the platform or file system cannot perform
	// the operation with the promised strength. Nothing weaker was done
	// instead.
	ErrUnsupported = errors.New("not supported by this file system")
)
