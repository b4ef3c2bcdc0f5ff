package files

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/disk"
)

// ErrConflict states that another process changed the file concurrently. Its
// content stays; the operation had no effect.
var ErrConflict = errors.New("the file changed concurrently")

// errAlias marks a path that leads through a symbolic link.
var errAlias = errors.New("leads through a symbolic link")

func conflict(path, what string) error { return fmt.Errorf("%s: %w: %s", path, ErrConflict, what) }

func invalid(path, why string) error { return fmt.Errorf("%s: %w: %s", path, ctxperm.ErrInvalid, why) }

// missing reports whether the name does not exist, or its parent is not a
// directory.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// occupied reports whether a directory still has entries.
func occupied(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY)
}

// unreadable reports whether the version of a file cannot be determined. Such a
// version belongs to another process.
func unreadable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrConflict)
}

// moving reports whether a file changed during a read, so that another read may
// succeed.
func moving(err error) bool {
	return missing(err) || errors.Is(err, disk.ErrBusy) || errors.Is(err, disk.ErrType)
}
