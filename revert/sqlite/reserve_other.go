//go:build !linux

package sqlite

import (
	"errors"
	"os"
)

// allocate is not supported: no call works on all file systems.
func allocate(*os.File, int64) error { return errors.ErrUnsupported }
