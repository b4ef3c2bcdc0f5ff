//go:build !portable

package process

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/sparse"
)

// make copies one name, except for the bits of a directory. It copies a file
// that this user may not read without its content, and reports it as shut.
func (r *copyRefresh) make(from, to string, is unix.Stat_t, name string) (shut bool, err error) {
	switch is.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
	case unix.S_IFLNK:
		target, err := os.Readlink(from)
		if err == nil {
			err = os.Symlink(target, to)
		}
		if err == nil {
			err = give(to, is)
		}
		return false, err
	case unix.S_IFREG:
		if other := r.first[is.Ino]; other != "" && is.Nlink > 1 {
			r.hardLinks[r.next[other].copy.ino] = true
			return r.next[other].shut, os.Link(filepath.Join(r.dir, other), to)
		}
		r.first[is.Ino] = name
		if shut, err = copyFile(from, to, is); err != nil {
			return shut, err
		}
	case unix.S_IFIFO:
		return false, makePipe(to, is)
	default:
		return false, nil // a socket is useless in a copy, and a device needs privileges
	}
	denied, err := copyMetadata(from, to, is)
	if shut = shut || denied; shut && err == nil && is.Mode&unix.S_IFMT == unix.S_IFREG {
		err = chmod(to, 0)
	}
	return shut, err
}

// makePipe creates a pipe with the owner, bits and time of another one.
func makePipe(to string, is unix.Stat_t) error {
	err := unix.Mkfifo(to, 0o600)
	if err == nil {
		err = give(to, is)
	}
	if err == nil {
		err = chmod(to, bitsFor(to, is))
	}
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, to, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, is.Mtim}, 0)
}

// copyFile shares the content of a file if the file system can, and keeps the
// holes of a sparse one.
func copyFile(from, to string, is unix.Stat_t) (shut bool, err error) {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = in.Close() }()
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return false, nil
	}
	if is.Blocks*512 >= is.Size {
		_, err = io.Copy(out, in)
		return false, err
	}
	w := sparse.NewWriter(sparse.File{File: out})
	if _, err = sparse.Copy(w, sparse.File{File: in}, make([]byte, 128<<10)); err == nil {
		err = w.End()
	}
	return false, err
}

// give changes the owner of a copy to that of a file. If this user may not, the
// copy stays with this user. A program's changes to it then count as changes to
// a file of the other owner.
func give(to string, is unix.Stat_t) error {
	for _, user := range []int{int(is.Uid), -1} { // an owner may set the file's group to its own groups
		err := unix.Lchown(to, user, int(is.Gid))
		if err == nil || !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return nil
}

// copyMetadata sets owner, attributes and time of a copy, and the bits unless it is a
// directory. It reports whether this user may not read the attributes.
func copyMetadata(from, to string, is unix.Stat_t) (denied bool, err error) {
	if err := give(to, is); err != nil {
		return false, err
	}
	theirs, err := attributes(from)
	if errors.Is(err, fs.ErrPermission) {
		denied, err = true, nil
	}
	if err != nil {
		return denied, err
	}
	mine, err := attributes(to)
	if err != nil {
		return denied, err
	}
	for name := range mine {
		if _, keeps := theirs[name]; !keeps {
			err = errors.Join(err, unix.Removexattr(to, name))
		}
	}
	for name, value := range theirs {
		set := unix.Setxattr(to, name, value, 0)
		if errors.Is(set, fs.ErrPermission) && !settable(name) {
			set = nil // a program cannot set it either: the file in the root keeps it
		}
		err = errors.Join(err, set)
	}
	if is.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = errors.Join(err, chmod(to, bitsFor(to, is)))
	}
	return denied, errors.Join(err, unix.UtimesNanoAt(unix.AT_FDCWD, to, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, is.Mtim}, 0))
}

// bitsFor returns the bits for the copy of a file. A copy with another owner
// loses setuid and setgid, because they would refer to the wrong owner.
func bitsFor(to string, is unix.Stat_t) uint32 {
	var now unix.Stat_t
	if err := unix.Lstat(to, &now); err == nil && now.Uid == is.Uid && now.Gid == is.Gid {
		return is.Mode & 0o7777
	}
	return is.Mode & 0o1777
}

// settable reports whether every owner of a file may set an attribute.
func settable(name string) bool { return (disk.Self{}).Sets(name) }

// attributes returns the attributes of a file that remit keeps.
func attributes(path string) (map[string][]byte, error) {
	names := make([]byte, 64<<10) // the maximum size
	n, err := unix.Llistxattr(path, names)
	if err != nil && !errors.Is(err, unix.ENOTSUP) {
		return nil, &fs.PathError{Op: "attributes", Path: path, Err: err}
	}
	all := map[string][]byte{}
	for name := range strings.SplitSeq(string(names[:max(n, 0)]), "\x00") {
		if disk.CheckXattr(name) != nil {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Lgetxattr(path, name, value)
		if err != nil {
			return nil, &fs.PathError{Op: "attributes", Path: path, Err: err}
		}
		all[name] = value[:n]
	}
	return all, nil
}

func chmod(path string, bits uint32) error {
	if err := unix.Chmod(path, bits); err != nil {
		return &fs.PathError{Op: "chmod", Path: path, Err: err}
	}
	return nil
}

// lacking returns the bits that the owner lacks to read a file, or to work in a
// directory.
func lacking(mode uint32) uint32 {
	need := uint32(0o400)
	if mode&unix.S_IFMT == unix.S_IFDIR {
		need = 0o700
	}
	return need &^ mode
}

// unlock gives the owner of a file in the copy the right to read it, or to work
// in a directory.
func unlock(path string, mode uint32) error {
	if lacking(mode) == 0 {
		return nil
	}
	return chmod(path, mode&0o7777|lacking(mode))
}
