package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	driver "modernc.org/sqlite"
)

// troubled is an error of the file system, in words that say what to do.
type troubled struct {
	says string
	err  error
}

// Error describes the fault of the file system, and the operation that failed.
func (t *troubled) Error() string { return t.says }

// Unwrap returns the original error.
func (t *troubled) Unwrap() error { return t.err }

// trouble names the reason why a folder cannot be written, if an error can come
// from that. For a full or read-only disk, SQLite reports that it cannot open a
// file.
func trouble(dir string, err error) error {
	if err == nil || !storage(err) {
		return err
	}
	says := lacks(dir)
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
	return &troubled{fmt.Sprintf("%s (%v)", says, cause), err}
}

// starved reports whether releasing the reserve may remove the cause of an
// error.
func starved(dir string, err error) bool {
	if codeOf(err) == codeNoOpen { // or the user has no permission to open it
		return lacks(dir) != ""
	}
	return storage(err)
}

// storage reports whether an error can come from the file system.
func storage(err error) bool {
	switch codeOf(err) {
	case codeFull, codeIO, codeNoOpen, codeReading:
		return true
	}
	return errors.Is(err, errNoRoom) || slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EROFS}, func(of error) bool { return errors.Is(err, of) })
}
