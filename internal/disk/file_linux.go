//go:build !portable

package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// openFile is a File on the real disk. It is a bare descriptor: an os.File
// would ask for its flags, and try to wait for a regular file.
type openFile struct {
	descriptor
	name  string // as the caller gave it, relative to the root
	holes bool   // its file system reports holes reliably
}

// use runs a system call on the open file.
func (f *openFile) use(op string, call func(fd int) error) error {
	return pathError(op, f.name, f.descriptor.use(func(fd int) error {
		return interrupted(func() error { return call(fd) })
	}))
}

func (f *openFile) Read(p []byte) (n int, err error) {
	err = f.use("read", func(fd int) (err error) {
		n, err = unix.Read(fd, p)
		return err
	})
	if err != nil {
		return 0, err
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (f *openFile) Write(p []byte) (done int, err error) {
	for done < len(p) && err == nil {
		err = f.use("write", func(fd int) error {
			n, err := unix.Write(fd, p[done:])
			done += max(n, 0)
			if err == nil && n <= 0 {
				err = io.ErrUnexpectedEOF
			}
			return err
		})
	}
	return done, err
}

func (f *openFile) Skip(n int64) error {
	return f.use("skip", func(fd int) error {
		end, err := unix.Seek(fd, n, io.SeekCurrent)
		if err != nil {
			return err
		}
		n = 0 // an interrupted call has already moved
		return unix.Ftruncate(fd, end)
	})
}

// Hole skips the zeros that come next, if the file system reports them. At a
// file system that cannot tell it skips nothing.
func (f *openFile) Hole() (n int64, err error) {
	if !f.holes {
		return 0, nil
	}
	err = f.use("seek", func(fd int) error {
		at, err := unix.Seek(fd, 0, io.SeekCurrent)
		if err != nil {
			return err
		}
		next, err := unix.Seek(fd, at, unix.SEEK_DATA)
		switch {
		case errors.Is(err, unix.ENXIO): // only zeros up to the end
			next, err = unix.Seek(fd, 0, io.SeekEnd)
		case err != nil:
			return nil
		}
		if err == nil && next < at { // it was truncated meanwhile
			next, err = unix.Seek(fd, at, io.SeekStart)
		}
		n = next - at
		return err
	})
	return n, err
}

func (f *openFile) Sync() error { return f.use("sync", fsync) }

func (f *openFile) Close() error { return pathError("close", f.name, f.close()) }

func (f *openFile) Stat() (info Info, err error) {
	err = f.use("stat", func(fd int) (err error) {
		info, err = statOf(fd)
		return err
	})
	_, info.Name = split(f.name)
	return info, err
}

// CloneTo makes an empty file share the content of this one, if the file system
// supports it and contains both. A write to one does not change the other.
func (f *openFile) CloneTo(to *os.File) error {
	return control(to, func(dest int) error {
		return f.use("clone", func(src int) error { return unix.IoctlFileClone(dest, src) })
	})
}

// The methods below are OpenMetadata.

// TryLease is Root.TryLease for the open file, which must be open for reading.
func (f *openFile) TryLease() error { return f.use("quiet", lease) }

func (f *openFile) Xattrs() (map[string][]byte, error) {
	attrs := map[string][]byte{}
	err := f.use("getxattr", func(fd int) error { return readXattrs(fd, attrs) })
	if errors.Is(err, unix.EOPNOTSUPP) {
		return attrs, nil
	}
	if err != nil {
		return nil, err
	}
	return attrs, nil
}

func (f *openFile) SetXattr(key string, value []byte) error {
	if err := CheckXattr(key); err != nil {
		return pathError("setxattr", f.name, err)
	}
	return f.use("setxattr", func(fd int) error { return xattrError(unix.Fsetxattr(fd, key, value, 0)) })
}

func (f *openFile) RemoveXattr(key string) error {
	if err := CheckXattr(key); err != nil {
		return pathError("removexattr", f.name, err)
	}
	return f.use("removexattr", func(fd int) error { return xattrError(unix.Fremovexattr(fd, key)) })
}

func (f *openFile) Chmod(perm fs.FileMode) error {
	if err := checkPerm(perm); err != nil {
		return pathError("chmod", f.name, err)
	}
	return f.use("chmod", func(fd int) error {
		if err := unix.Fchmod(fd, rawPerm(perm)); err != nil {
			return err
		}
		return stuck(fd, perm)
	})
}

func (f *openFile) Chown(o Owner) error {
	if !o.Known {
		return pathError("chown", f.name, ErrUnsupported)
	}
	return f.use("chown", func(fd int) error { return chown(fd, o) })
}

func (f *openFile) SetMtime(t time.Time) error {
	return f.use("chtimes", func(fd int) error { return setMtime(fd, t) })
}
