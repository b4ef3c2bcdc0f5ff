package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// makePrivate makes the state folder, or accepts one that nobody else may enter.
// An empty folder is taken over and made private.
func makePrivate(dir string) error {
	if err := makeFolder(dir); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return nil // windows: what a user's own folder inherits
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return fmt.Errorf("others may enter the folder (mode %v), and a journal holds what tools have read: chmod 700 it", info.Mode().Perm())
	}
	return os.Chmod(dir, 0o700)
}

// makeFolder makes a folder and the missing ones above it, each durable in the
// one above: what is synced inside is of no use when the way there is lost.
func makeFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is not a folder", dir)
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	if err := makeFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

// syncFolder makes the names in a folder durable. Windows has no such call: its
// file systems journal names themselves.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
