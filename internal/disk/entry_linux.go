//go:build !portable

package disk

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// within runs act on the directory that contains the name. The base is one
// element without a special meaning, so a system call on the two cannot leave
// the directory unless it follows a link.
func (r *linuxRoot) within(name string, act func(dir int, base string) error) error {
	if err := CheckPath(name); err != nil {
		return err
	}
	parent, base := split(name)
	return r.walk.folder(parent, func(fd int) error { return act(fd, base) })
}

// between is within for two names.
func (r *linuxRoot) between(from, to string, act func(fromDir int, fromBase string, toDir int, toBase string) error) error {
	return r.within(from, func(fromDir int, fromBase string) error {
		return r.within(to, func(toDir int, toBase string) error {
			return act(fromDir, fromBase, toDir, toBase)
		})
	})
}

func (r *linuxRoot) Create(name string, perm fs.FileMode) (File, error) {
	fd, err := r.create(name, perm)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	return &openFile{descriptor: descriptor{fd: fd}, name: name}, nil
}

// create opens the file with no more than its owner's bits, so that it is never
// wider than requested. It sets the other bits later, without the umask.
func (r *linuxRoot) create(name string, perm fs.FileMode) (fd int, err error) {
	if err := checkPerm(perm); err != nil {
		return 0, err
	}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	err = r.within(name, func(dir int, base string) error {
		return interrupted(func() (err error) {
			fd, err = unix.Openat(dir, base, flags, rawPerm(perm)&0o600)
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	if err := exact(fd, perm); err != nil {
		_ = unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

// exact sets the bits of a new file if the umask or the list of its folder
// changed them.
func exact(fd int, perm fs.FileMode) error {
	if stuck(fd, perm) == nil {
		return nil
	}
	if err := unix.Fchmod(fd, rawPerm(perm)); err != nil {
		return err
	}
	return stuck(fd, perm)
}

func (r *linuxRoot) Mkdir(name string, perm fs.FileMode) error {
	if err := checkPerm(perm); err != nil {
		return pathError("mkdir", name, err)
	}
	err := r.within(name, func(dir int, base string) error {
		if err := unix.Mkdirat(dir, base, rawPerm(perm)&0o700); err != nil {
			return err
		}
		fd, err := unix.Openat(dir, base, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }() // nothing was written through it
		return chmod(fd, perm)
	})
	return pathError("mkdir", name, err)
}

func (r *linuxRoot) Symlink(target, name string) error {
	if err := CheckTarget(target); err != nil {
		return pathError("symlink", name, err)
	}
	err := r.within(name, func(dir int, base string) error { return unix.Symlinkat(target, dir, base) })
	return pathError("symlink", name, err)
}

// Link checks the file first: the kernel would give a socket a second name too.
func (r *linuxRoot) Link(name, as string) error {
	info, err := r.stat(name)
	if err == nil && info.Type != TypeFile {
		err = ErrType
	}
	if err == nil {
		err = r.between(name, as, func(fromDir int, fromBase string, toDir int, toBase string) error {
			return unix.Linkat(fromDir, fromBase, toDir, toBase, 0)
		})
	}
	return linkError("link", name, as, err)
}

// Remove tries to remove a file first, and a directory only after the error for
// a directory. The other order would report "not a directory" for a missing
// permission.
func (r *linuxRoot) Remove(name string) error {
	err := r.within(name, func(dir int, base string) error {
		err := unix.Unlinkat(dir, base, 0)
		if errors.Is(err, unix.EISDIR) {
			err = unix.Unlinkat(dir, base, unix.AT_REMOVEDIR)
		}
		return err
	})
	return pathError("remove", name, err)
}

func (r *linuxRoot) Exchange(a, b string) error {
	if inside(a, b) || inside(b, a) {
		return linkError("exchange", a, b, ErrPath)
	}
	return linkError("exchange", a, b, r.rename(a, b, unix.RENAME_EXCHANGE))
}

func (r *linuxRoot) RenameNoReplace(from, to string) error {
	if inside(to, from) {
		return linkError("rename", from, to, ErrPath)
	}
	return linkError("rename", from, to, r.rename(from, to, unix.RENAME_NOREPLACE))
}

func (r *linuxRoot) rename(from, to string, flags uint) error {
	return r.between(from, to, func(fromDir int, fromBase string, toDir int, toBase string) error {
		err := unix.Renameat2(fromDir, fromBase, toDir, toBase, flags)
		return renameError(err)
	})
}

// renameError names the errors of file systems without the flag, and of
// overlays that would have to copy a lower directory first.
func renameError(err error) error {
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS),
		errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EXDEV):
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}
