package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// makePrivate creates the state folder, or accepts one that only its user can
// enter. It takes over an empty folder and makes it private.
func makePrivate(dir string) error {
	if err := makeFolder(dir); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return nil // Windows: a user's own folder inherits its access
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		// Another opening may have taken it over between the two calls.
		if again, err := os.Stat(dir); err == nil && again.Mode().Perm()&0o077 == 0 {
			return nil
		}
		return fmt.Errorf("others may enter the folder (mode %v), and a journal holds what tools have read: chmod 700 it", info.Mode().Perm())
	}
	return os.Chmod(dir, 0o700)
}

// makeFolder creates a folder and its missing parents. Each is durable in its
// parent: a synced file is lost if its path is lost.
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
	if err := syncFolder(filepath.Dir(dir)); err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(dir))) // the next attempt would assume that it is durable
	}
	return nil
}

// errUnsynced says that the durable names of a folder are unknown.
var errUnsynced = errors.New("the names in the folder could not be made durable")

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
	//mutant:barrier
	if err = f.Sync(); err != nil {
		err = fmt.Errorf("%w: %w", errUnsynced, err)
	}
	return errors.Join(err, f.Close())
}

// checkFile refuses files that cannot be the database, which SQLite would
// change or name by a number. It opens nothing: closing the file would release
// the locks of this process on it.
func checkFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder, not a file", filepath.Base(path))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is a link or something else, not a file: name the folder where it is", filepath.Base(path))
	case namesOf(info) > 1: // another folder could have the file with other permissions, and other locks and logs
		return fmt.Errorf("%s has a second name, a hard link: copy the folder instead, and remove the link", filepath.Base(path))
	}
	return nil
}

// hasContent reports whether a folder of blobs is not empty.
func hasContent(dir string) (found bool, err error) {
	err = eachFile(dir, func(_, name string) error {
		found = found || name != "new"
		return nil
	})
	return found, ignoreMissing(err)
}
