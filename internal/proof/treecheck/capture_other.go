//go:build !linux

package treecheck

import (
	"errors"
	"fmt"
	"runtime"
)

// Capture works on Linux only. Here it returns errors.ErrUnsupported.
func Capture(dir string) (Tree, error) {
	return Tree{}, fmt.Errorf("treecheck: %q: cannot be described on %s: %w", dir, runtime.GOOS, errors.ErrUnsupported)
}
