package process

import (
	"errors"

	"golang.org/x/sys/windows"
)

// heldByOther reports whether a file could not be read because another program
// has it for itself.
func heldByOther(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}

// notFolder reports whether a name was taken for a folder and is none.
func notFolder(err error) bool { return errors.Is(err, windows.ERROR_DIRECTORY) }
