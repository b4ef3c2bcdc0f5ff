package files

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/disk"
)

// ErrConflict says that somebody else changed the file at the same time. What they wrote
// is there; the operation had no effect.
var ErrConflict = errors.New("somebody else changed it at the same time")

// errAlias marks a path that leads through a symbolic link.
var errAlias = errors.New("leads through a symbolic link")

func conflict(path, what string) error { return fmt.Errorf("%s: %w: %s", path, ErrConflict, what) }

func invalid(path, why string) error { return fmt.Errorf("%s: %w: %s", path, ctxperm.ErrInvalid, why) }

// missing reports whether nothing has the name, also because what should be its
// directory is none.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// occupied reports whether a directory still has entries.
func occupied(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY)
}

// unreadable reports whether nobody can say which version a file is: what it is
// then, is somebody else's.
func unreadable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrConflict)
}

// moving reports whether a file changed hands while it was looked at, so that
// another look may succeed.
func moving(err error) bool {
	return missing(err) || errors.Is(err, disk.ErrBusy) || errors.Is(err, disk.ErrType)
}
