package sandbox

import (
	"errors"
	"os"
	"path/filepath"
)

// Discard removes an upper folder with everything in it. It also removes
// folders that their owner may not enter, which an overlay leaves. It follows
// no link.
func Discard(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d == nil || !d.IsDir() {
			return nil // gone, or not a folder: its removal needs no right to it
		}
		if info, ierr := d.Info(); ierr == nil && info.Mode().Perm()&0o700 != 0o700 {
			return errors.Join(os.Chmod(path, 0o700), err) //nolint:gosec // to be removed
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(dir))
}
