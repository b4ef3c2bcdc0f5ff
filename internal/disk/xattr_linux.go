//go:build !portable

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

func (r *linuxRoot) Xattrs(name string) (attrs map[string][]byte, err error) {
	attrs = map[string][]byte{}
	err = r.content(name, func(fd int) error { return readXattrs(fd, attrs) })
	if errors.Is(err, ErrType) || errors.Is(err, unix.EOPNOTSUPP) {
		return attrs, nil
	}
	if err != nil {
		return nil, pathError("getxattr", name, err)
	}
	return attrs, nil
}

func (r *linuxRoot) SetXattr(name, key string, value []byte) error {
	if err := CheckXattr(key); err != nil {
		return pathError("setxattr", name, err)
	}
	err := r.content(name, func(fd int) error { return unix.Fsetxattr(fd, key, value, 0) })
	return pathError("setxattr", name, xattrError(err))
}

func (r *linuxRoot) RemoveXattr(name, key string) error {
	if err := CheckXattr(key); err != nil {
		return pathError("removexattr", name, err)
	}
	err := r.content(name, func(fd int) error { return unix.Fremovexattr(fd, key) })
	return pathError("removexattr", name, xattrError(err))
}

// content runs act on a file or directory opened for reading, which the calls
// for attributes and leases need. It opens the inode of the name itself, never
// the target of a link. If another inode gets the name between the two steps,
// the error is ErrBusy.
func (r *linuxRoot) content(name string, act func(fd int) error) error {
	return r.pinned(name, func(pin int, info Info) error {
		if info.Type == TypeDir {
			return readable(pin, act)
		}
		return r.contentOf(name, info, act)
	})
}

// contentOf runs act on a file opened for reading, if its name still leads to
// the described inode.
func (r *linuxRoot) contentOf(name string, info Info, act func(fd int) error) error {
	if info.Type != TypeFile {
		return ErrType
	}
	return r.walk.with(name, toRead, func(fd int) error {
		again, err := regular(fd)
		if errors.Is(err, ErrType) || err == nil && (again.Inode != info.Inode || again.Device != info.Device) {
			err = ErrBusy
		}
		if err != nil {
			return err
		}
		return act(fd)
	})
}

// readXattrs fills attrs. It skips an attribute that vanishes after it was
// listed.
func readXattrs(fd int, attrs map[string][]byte) error {
	list, err := sized(func(buf []byte) (int, error) { return unix.Flistxattr(fd, buf) })
	if err != nil {
		return err
	}
	for key := range strings.SplitSeq(string(list), "\x00") {
		if CheckXattr(key) != nil {
			continue
		}
		value, err := sized(func(buf []byte) (int, error) { return unix.Fgetxattr(fd, key, buf) })
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err != nil {
			return err
		}
		attrs[key] = value
	}
	return nil
}

// sized reads the size, then the value, again if the value grew in between.
func sized(get func(buf []byte) (int, error)) ([]byte, error) {
	for {
		size, err := get(nil)
		if err != nil || size == 0 {
			return []byte{}, err
		}
		buf := make([]byte, size)
		n, err := get(buf)
		if errors.Is(err, unix.ERANGE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return buf[:n], nil
	}
}

func xattrError(err error) error {
	switch {
	case errors.Is(err, unix.ENODATA):
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}

// keepsXattrs reads a missing attribute of the root: only a file system that
// supports attributes reports it as missing.
func keepsXattrs(root int) bool {
	err := readable(root, func(fd int) error {
		_, err := unix.Fgetxattr(fd, "user.remit.probe", nil)
		return err
	})
	return err == nil || errors.Is(err, unix.ENODATA)
}
