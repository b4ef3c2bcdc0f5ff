//go:build !linux

package sqlite

import (
	"errors"
	"os"
)

// allocate: there is no way that works on all file systems.
func allocate(*os.File, int64) error { return errors.ErrUnsupported }
