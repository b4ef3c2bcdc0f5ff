//go:build amd64 || arm64

package shim

import (
	"errors"
	"strconv"
	"syscall"
)

// The kernel refuses to rename a folder of an overlay that has a part in the
// lower layer. It renames any other folder. So a folder that the program
// renames is first created anew in its place. An empty folder takes over its
// entries, name by name, and then its name. Files are renamed, which the kernel
// supports.

// deepest bounds the nesting of folders: each needs two open descriptors.
const deepest = 1000

// retries bounds how often a folder is emptied again that the program keeps
// filling.
const retries = 50

// settle makes a folder renamable by the kernel. After an error the folder is
// unchanged.
func settle(parent int, name string) error {
	from, is, err := openListed(parent, name)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(from) }()
	var above syscall.Stat_t
	if err := syscall.Fstat(parent, &above); err != nil {
		return err
	}
	stand, to, err := createPlaceholder(parent)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(to) }()
	for try := 0; ; try++ {
		if err = moveAll(from, to, 0); err == nil {
			err = copyMetadata(from, to, is)
		}
		if err == nil {
			err = renameAt(parent, stand, parent, name, 0)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.ENOTEMPTY) || try == retries {
			break
		}
	}
	if back := moveBack(to, from, 0); back != nil {
		return revertedMoveError{back}
	}
	if back := removeFolder(parent, stand); back != nil {
		return revertedMoveError{back}
	}
	_ = timesOf(from, is)
	restoreTimes(parent, above)
	return err
}

// revertedMoveError states that a folder could not be restored.
type revertedMoveError struct{ error }

func (e revertedMoveError) Unwrap() error { return e.error }

// restoreTimes sets the times of a folder that is open only by its path.
func restoreTimes(folder int, is syscall.Stat_t) {
	fd, err := syscall.Openat(folder, ".", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_ = timesOf(fd, is)
	_ = syscall.Close(fd)
}

// createPlaceholder creates an empty folder with a free name.
func createPlaceholder(parent int) (name string, fd int, err error) {
	for n := 0; ; n++ {
		name = ".remit-renaming-" + strconv.Itoa(n)
		if err = syscall.Mkdirat(parent, name, 0o700); !errors.Is(err, syscall.EEXIST) {
			break
		}
	}
	if err != nil {
		return "", -1, err
	}
	if fd, _, err = openListed(parent, name); err != nil {
		_ = removeFolder(parent, name)
	}
	return name, fd, err
}

// openListed opens a folder for listing, and describes it.
func openListed(parent int, name string) (fd int, is syscall.Stat_t, err error) {
	fd, err = syscall.Openat(parent, name, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err == nil {
		if err = syscall.Fstat(fd, &is); err != nil {
			_ = syscall.Close(fd)
		}
	}
	return fd, is, err
}

// listed returns the names in an open folder, from the first.
func listed(fd int) ([]string, error) {
	if _, err := syscall.Seek(fd, 0, 0); err != nil {
		return nil, err
	}
	return namesIn(fd), nil
}

// moveAll moves the entries of one folder to another.
func moveAll(from, to, depth int) error {
	names, err := listed(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := renameAt(from, name, to, name, 0)
		if errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
			err = moveFolder(from, to, name, depth+1)
		}
		if err != nil && !errors.Is(err, syscall.ENOENT) { // the program removed it meanwhile
			return err
		}
	}
	return nil
}

// moveFolder moves one folder that the kernel does not rename. It also moves
// one whose name is taken because the program filled it during the move.
func moveFolder(from, to int, name string, depth int) error {
	if depth > deepest {
		return syscall.ELOOP
	}
	old, is, err := openListed(from, name)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(old) }()
	if err := ignore(syscall.EEXIST, syscall.Mkdirat(to, name, 0o700)); err != nil {
		return err
	}
	made, _, err := openListed(to, name)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(made) }()
	for try := 0; ; try++ {
		if err := moveAll(old, made, depth); err != nil {
			return err
		}
		if err := copyMetadata(old, made, is); err != nil {
			return err
		}
		err := removeFolder(from, name)
		if !errors.Is(err, syscall.ENOTEMPTY) || try == retries {
			return err
		}
	}
}

// moveBack moves the entries of the stand-in to their original folder. An entry
// that the program created there meanwhile is newer, and stays.
func moveBack(from, to, depth int) error {
	names, err := listed(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := renameAt(from, name, to, name, renameNoreplace)
		if errors.Is(err, syscall.EEXIST) {
			err = mergeBack(from, to, name, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mergeBack moves back a folder whose name exists again, or still.
func mergeBack(from, to int, name string, depth int) error {
	moved, is, err := openListed(from, name)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return syscall.Unlinkat(from, name)
	}
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(moved) }()
	kept, _, err := openListed(to, name)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(kept) }()
	if err := moveBack(moved, kept, depth); err != nil {
		return err
	}
	if err := removeFolder(from, name); err != nil {
		return err
	}
	return timesOf(kept, is)
}
