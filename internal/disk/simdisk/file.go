package simdisk

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"syscall"

	"github.com/remit-dev/remit/internal/disk"
)

// file is one opening of a regular file.
type file struct {
	disk   *Disk
	ino    uint64
	name   string
	writes bool
	at     int
	closed bool
}

func (r *root) Open(name string) (disk.File, error) {
	f := &file{disk: r.disk, name: name}
	err := r.enter("open", name, disk.CheckPath, func() (bool, error) {
		ino, err := r.disk.find(name, true, r.direct)
		if err == nil && r.disk.now[ino].kind != disk.TypeFile {
			err = disk.ErrType
		}
		f.ino = ino
		return false, err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (r *root) Create(name string, perm fs.FileMode) (disk.File, error) {
	if err := checkPerm(perm); err != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: err}
	}
	f := &file{disk: r.disk, name: name, writes: true}
	err := r.enter("create", name, disk.CheckPath, func() (bool, error) {
		ino, err := r.add("create", name, node{kind: disk.TypeFile, perm: perm})
		if err == nil {
			f.ino = ino
			r.disk.writers[ino]++
		}
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// run runs an operation on the file under the disk's lock.
func (f *file) run(what string, do func() (changed bool, err error)) error {
	f.disk.mu.Lock()
	err := error(fs.ErrClosed)
	changed := false
	if !f.closed {
		changed, err = do()
	}
	f.disk.mu.Unlock()
	if changed {
		f.disk.notify(what + " " + f.name)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return &fs.PathError{Op: what, Path: f.name, Err: err}
	}
	return err
}

func (f *file) Read(p []byte) (n int, err error) {
	err = f.run("read", func() (bool, error) {
		if f.writes {
			return false, syscall.EBADF
		}
		data := f.disk.now[f.ino].data
		if f.at >= len(data) && len(p) > 0 {
			return false, io.EOF
		}
		n = copy(p, data[f.at:])
		f.at += n
		return false, nil
	})
	return n, err
}

func (f *file) Write(p []byte) (n int, err error) {
	err = f.run("write", func() (bool, error) {
		if !f.writes {
			return false, syscall.EBADF
		}
		if len(p) == 0 {
			return false, nil
		}
		f.disk.do(op{what: "write " + f.name, ino: f.ino, write: &dataRange{f.at, append([]byte{}, p...)}})
		n = len(p)
		f.at += n
		return true, nil
	})
	return n, err
}

// Skip writes zeros: this disk has no holes.
func (f *file) Skip(n int64) error {
	_, err := f.Write(make([]byte, n))
	return err
}

func (f *file) Sync() error {
	return f.run("sync", func() (bool, error) {
		return f.disk.settle(func(o op) bool { return o.ino == f.ino }), nil
	})
}

func (f *file) Stat() (info disk.Info, err error) {
	err = f.run("stat", func() (bool, error) {
		info = f.disk.now[f.ino].info(f.ino, path.Base(f.name))
		return false, nil
	})
	return info, err
}

func (f *file) Close() error {
	return f.run("close", func() (bool, error) {
		f.closed = true
		if f.writes {
			f.disk.writers[f.ino]--
		}
		return false, nil
	})
}
