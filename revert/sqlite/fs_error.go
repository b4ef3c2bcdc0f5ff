package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	driver "modernc.org/sqlite"
)

// fsError is an error of the file system, in words that say what to do.
type fsError struct {
	says string
	err  error
}

// Error describes the fault of the file system, and the operation that failed.
func (t *fsError) Error() string { return t.says }

// Unwrap returns the original error.
func (t *fsError) Unwrap() error { return t.err }

// explainFS names the reason why a folder cannot be written, if an error can come
// from that. For a full or read-only disk, SQLite reports that it cannot open a
// file.
func explainFS(dir string, err error) error {
	if err == nil || !isStorageError(err) {
		return err
	}
	says := spaceProblem(dir)
	if says == "" {
		return err
	}
	if codeOf(err) == codeFull {
		says = "journal: no space left, nothing was stored: " + says
	}
	cause := err
	if failed, ok := errors.AsType[*driver.Error](err); ok {
		cause = failed
	}
	return &fsError{fmt.Sprintf("%s (%v)", says, cause), err}
}

// reserveMayHelp reports whether releasing the reserve may remove the cause of an
// error.
func reserveMayHelp(dir string, err error) bool {
	if codeOf(err) == codeNoOpen { // or the user has no permission to open it
		return spaceProblem(dir) != ""
	}
	return isStorageError(err)
}

// isStorageError reports whether an error can come from the file system.
func isStorageError(err error) bool {
	switch codeOf(err) {
	case codeFull, codeIO, codeNoOpen, codeReading:
		return true
	}
	return errors.Is(err, errNoRoom) || slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EROFS}, func(of error) bool { return errors.Is(err, of) })
}
