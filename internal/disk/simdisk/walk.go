package simdisk

import (
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/remit-dev/remit/internal/disk"
)

// mostLinks is the maximum number of links that a walk follows.
const mostLinks = 40

// walk is the state of resolving a name.
type walk struct {
	i      image
	direct bool // follow no link
	stack  []uint64
	links  int
}

// find returns the inode of a name, or 0 and fs.ErrNotExist if there is none.
// Unless follow is set, it returns a final link itself.
func (d *Disk) find(name string, follow, direct bool) (uint64, error) {
	if name == "." {
		return top, nil
	}
	w := walk{i: d.now, direct: direct, stack: []uint64{top}}
	if err := w.along(name, follow); err != nil {
		return 0, err
	}
	return w.at(), nil
}

func (w *walk) at() uint64 { return w.stack[len(w.stack)-1] }

// along continues by a path, which may be the target of a link.
func (w *walk) along(way string, follow bool) error {
	if strings.HasPrefix(way, "/") {
		return disk.ErrEscape
	}
	parts := strings.Split(way, "/")
	for n, part := range parts {
		if err := w.step(part, follow || n < len(parts)-1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) step(part string, follow bool) error {
	here := w.i[w.at()]
	switch {
	case here.kind != disk.TypeDir:
		return syscall.ENOTDIR
	case part == "" || part == ".":
		return nil
	case part == "..":
		if len(w.stack) == 1 {
			return disk.ErrEscape
		}
		w.stack = w.stack[:len(w.stack)-1]
		return nil
	}
	ino, ok := here.names[part]
	if !ok {
		return fs.ErrNotExist
	}
	n := w.i[ino]
	if n.kind != disk.TypeLink || !follow {
		w.stack = append(w.stack, ino)
		return nil
	}
	if w.links++; w.links > mostLinks || w.direct {
		return disk.ErrEscape
	}
	return w.along(n.target, true)
}

// place finds the directory of a name. The name itself may be free.
func (d *Disk) place(name string, direct bool) (dir uint64, base string, err error) {
	dir, err = d.find(path.Dir(name), true, direct)
	if err == nil && d.now[dir].kind != disk.TypeDir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return 0, "", err
	}
	return dir, path.Base(name), nil
}

// entry is place, with the inode of the name. If the name is free, it returns
// the directory with fs.ErrNotExist.
func (d *Disk) entry(name string, direct bool) (e edit, err error) {
	e.dir, e.name, err = d.place(name, direct)
	if err != nil {
		return e, err
	}
	ino, ok := d.now[e.dir].names[e.name]
	if !ok {
		return e, fs.ErrNotExist
	}
	e.ino = ino
	return e, nil
}

func inside(name, dir string) bool { return strings.HasPrefix(name, dir+"/") }
