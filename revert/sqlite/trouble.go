package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	driver "modernc.org/sqlite"
)

// troubled is an error that came from the file system, in words that say what to do.
type troubled struct {
	says string
	err  error
}

// Error says what is wrong with the file system, and what that stopped.
func (t *troubled) Error() string { return t.says }

// Unwrap returns the error as it came.
func (t *troubled) Unwrap() error { return t.err }

// trouble names what keeps a folder from being written to, where an error may come from
// that. SQLite says of a full or read-only disk that it cannot open a file.
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

// starved reports whether an error may go away with the reserve.
func starved(dir string, err error) bool {
	if codeOf(err) == codeNoOpen { // or the user has no right to open it
		return lacks(dir) != ""
	}
	return storage(err)
}

// storage reports whether an error can be one of the file system.
func storage(err error) bool {
	switch codeOf(err) {
	case codeFull, codeIO, codeNoOpen, codeReading:
		return true
	}
	return errors.Is(err, errNoRoom) || slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EROFS}, func(of error) bool { return errors.Is(err, of) })
}
