//go:build amd64 || arm64

package shim

import (
	"errors"
	"strconv"
	"syscall"
)

// The kernel refuses to rename a folder of which an overlay's lower layer has a
// part, and renames any other. So a folder that the program renames is first made
// anew in its place: an empty folder takes over what is in it, name by name, and
// then the folder's own name. Files are renamed, which the kernel can.

// deepest is how many folders in one another are followed: two descriptors are open
// for each.
const deepest = 1000

// retries is how often a folder is emptied again that the program keeps filling.
const retries = 50

// settle makes a folder one that the kernel renames. After an error it is as it was.
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
	stand, to, err := standIn(parent)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(to) }()
	for try := 0; ; try++ {
		if err = moveAll(from, to, 0); err == nil {
			err = dress(from, to, is)
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
		return undoneError{back}
	}
	if back := removeFolder(parent, stand); back != nil {
		return undoneError{back}
	}
	_ = timesOf(from, is)
	restoreTimes(parent, above)
	return err
}

// undoneError says that a folder could not be made what it was again.
type undoneError struct{ error }

func (e undoneError) Unwrap() error { return e.error }

// restoreTimes sets the times of a folder that is open by its path alone.
func restoreTimes(folder int, is syscall.Stat_t) {
	fd, err := syscall.Openat(folder, ".", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_ = timesOf(fd, is)
	_ = syscall.Close(fd)
}

// standIn makes an empty folder of a name that is free.
func standIn(parent int) (name string, fd int, err error) {
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

// openListed opens a folder to be listed, and describes it.
func openListed(parent int, name string) (fd int, is syscall.Stat_t, err error) {
	fd, err = syscall.Openat(parent, name, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err == nil {
		if err = syscall.Fstat(fd, &is); err != nil {
			_ = syscall.Close(fd)
		}
	}
	return fd, is, err
}

// listed are the names in an open folder, from the first.
func listed(fd int) ([]string, error) {
	if _, err := syscall.Seek(fd, 0, 0); err != nil {
		return nil, err
	}
	return namesIn(fd), nil
}

// moveAll moves what is in one folder to another.
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
		if err != nil && !errors.Is(err, syscall.ENOENT) { // gone: the program took it away meanwhile
			return err
		}
	}
	return nil
}

// moveFolder moves one folder that the kernel does not rename, or whose name is taken
// because the program has filled it while it was moved.
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
		if err := dress(old, made, is); err != nil {
			return err
		}
		err := removeFolder(from, name)
		if !errors.Is(err, syscall.ENOTEMPTY) || try == retries {
			return err
		}
	}
}

// moveBack moves what is in the stand-in to the folder that it came from. What the
// program has put there meanwhile under the same name is newer, and stays.
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

// mergeBack moves back what bears a name that is there again, or still.
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
