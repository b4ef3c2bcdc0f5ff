package sandbox

import (
	"errors"
	"os"
	"path/filepath"
)

// Discard removes an upper folder with everything in it, also what its owner may
// not enter: an overlay leaves such folders. It follows no link.
func Discard(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d == nil || !d.IsDir() {
			return nil // gone, or no folder: removing needs no right to it
		}
		if info, ierr := d.Info(); ierr == nil && info.Mode().Perm()&0o700 != 0o700 {
			return errors.Join(os.Chmod(path, 0o700), err) //nolint:gosec // to be removed
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(dir))
}
