package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// rootError converts an error of os.Root into one of this package. os.Root has
// no sentinel for leaving the root. But that error is no error number either,
// and no other error that arrives here is neither a number nor one of io/fs.
func rootError(err error) error {
	cause := innermost(err)
	if cause == nil || errors.Is(cause, fs.ErrClosed) || errors.Is(cause, fs.ErrInvalid) {
		return cause
	}
	if number, ok := errors.AsType[syscall.Errno](cause); !ok || number == syscall.ELOOP {
		return fmt.Errorf("%w: %w", ErrEscape, cause)
	}
	return cause
}

// innermost removes the wrappers that contain host paths.
func innermost(err error) error {
	if wrapped, ok := errors.AsType[*fs.PathError](err); ok {
		return wrapped.Err
	}
	if wrapped, ok := errors.AsType[*os.LinkError](err); ok {
		return wrapped.Err
	}
	return err
}

// pathError names the operation and the caller's path. It returns nil if err is
// nil.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// linkError is pathError for an operation on two names.
func linkError(op, from, to string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: from, New: to, Err: err}
}
