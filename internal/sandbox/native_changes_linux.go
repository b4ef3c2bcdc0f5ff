//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// rootOverlayPrefix is the prefix of the attributes in which an overlay of the root
// user keeps its metadata.
const rootOverlayPrefix = "trusted.overlay."

// changes returns what the program wrote. It describes a name as the program
// saw it. The upper folder determines which names there are, and which folders
// begin empty. In a renamed folder it lists every entry.
//
// The listed files must stay readable after changes of the root. So changes
// copies up each file that the overlay still reads from the root.
func (n *native) changes() ([]OverlayEntry, error) {
	for again := false; ; again = true {
		w := nativeWalk{native: n, inodes: map[[2]uint64]uint64{}}
		if err := w.walk(".", false, false); err != nil {
			return nil, err
		}
		missing, err := w.otherNames()
		if len(missing) == 0 || err != nil {
			return w.all, err
		}
		if again { // no process writes any more
			return nil, fmt.Errorf("%q is another name of a file that was written, and cannot be copied", missing[0])
		}
		for _, name := range missing {
			if err := n.copyUp(name); err != nil {
				return nil, err
			}
		}
	}
}

// nativeWalk is one walk of the written entries.
type nativeWalk struct {
	*native

	all    []OverlayEntry
	inodes map[[2]uint64]uint64 // a unique number for each file, by device and inode
}

// walk lists a name and the names below it. In a renamed folder it lists
// everything.
func (w *nativeWalk) walk(name string, replaced, moved bool) error {
	books, there, err := w.attrs(name)
	if err != nil {
		return err
	}
	if books.deleted {
		w.all = append(w.all, OverlayEntry{Name: name, Kind: Deleted})
		return nil
	}
	is, err := look(w.view, name, "")
	if err != nil {
		return err
	}
	if is.Kind == File && !there {
		if err := w.copyUp(name); err != nil {
			return err
		}
	}
	if is.Kind == File {
		if is.Ino, is.Same, err = w.number(name); err != nil {
			return err
		}
	}
	moved = moved || books.redirect
	is.Copied = books.origin || !there
	if is.Kind == Folder {
		is.Replaced = replaced || moved || books.opaque
		is.Same = !is.Replaced
	}
	w.all = append(w.all, is)
	if is.Kind != Folder {
		return nil
	}
	from := w.upper
	if moved {
		from = w.view
	}
	names, err := readNames(from, name)
	for _, below := range names {
		if err := w.walk(path.Join(name, below), is.Replaced, moved); err != nil {
			return err
		}
	}
	return err
}

// overlayAttrs is the overlay's metadata of a name.
type overlayAttrs struct{ deleted, opaque, redirect, origin bool }

// attrs reads the metadata of a name. A name that exists only in the root has
// none.
func (n *native) attrs(name string) (b overlayAttrs, there bool, err error) {
	pin, err := openBelow(n.upper, name, unix.O_PATH)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return b, false, nil
	}
	if err != nil {
		return b, false, err
	}
	defer func() { _ = pin.Close() }()
	var is unix.Stat_t
	if err := unix.Fstat(int(pin.Fd()), &is); err != nil {
		return b, true, err
	}
	if kindOf(is) == Deleted {
		b.deleted = true
		return b, true, nil
	}
	if kind := kindOf(is); kind != File && kind != Folder {
		return b, true, nil
	}
	has := func(book string) ([]byte, bool) {
		if err != nil {
			return nil, false
		}
		at := fmt.Sprintf("/proc/self/fd/%d", pin.Fd())
		value, e := sized(func(buf []byte) (int, error) { return unix.Getxattr(at, rootOverlayPrefix+book, buf) })
		if e != nil && !errors.Is(e, unix.ENODATA) && !errors.Is(e, unix.ENOTSUP) {
			err = e
		}
		return value, e == nil
	}
	opaque, _ := has("opaque")
	b.opaque = string(opaque) == "y"
	_, b.redirect = has("redirect")
	_, b.origin = has("origin")
	if _, only := has("metacopy"); only && err == nil {
		err = fmt.Errorf("%q: the overlay has its attributes alone", name)
	}
	return b, true, err
}

// number returns the number of a file. It reports whether it is the root's file
// of this name. An overlay keeps the root's inode number of a file if all
// layers are in one file system.
func (w *nativeWalk) number(name string) (n uint64, same bool, err error) {
	is, err := stat(w.view, name)
	if err != nil {
		return 0, false, err
	}
	was, err := stat(w.lower, name)
	same = err == nil && was.Ino == is.Ino
	key := [2]uint64{uint64(is.Dev), is.Ino} //nolint:unconvert // other widths elsewhere
	if w.inodes[key] == 0 {
		w.inodes[key] = uint64(len(w.inodes) + 1)
	}
	return w.inodes[key], same, nil
}

// copyUp makes the overlay copy a file of the root.
func (n *native) copyUp(name string) error {
	f, err := openBelow(n.view, name, unix.O_WRONLY|unix.O_NONBLOCK)
	if err != nil {
		return err
	}
	return f.Close()
}

// otherNames returns the names of files that were written only under other
// names, because all names have the same content. The overlay keeps such a file
// in its index. It walks everything that the program saw, which only such files
// make necessary.
func (w *nativeWalk) otherNames() (names []string, err error) {
	if some, err := w.indexed(); !some || err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, is := range w.all {
		known[is.Name] = true
	}
	var search func(folder string) error
	search = func(folder string) error {
		found, err := readNames(w.view, folder)
		for _, below := range found {
			name := path.Join(folder, below)
			now, err := stat(w.view, name)
			switch {
			case err != nil:
				return err
			case now.Mode&unix.S_IFMT == unix.S_IFDIR:
				err = search(name)
			case now.Mode&unix.S_IFMT == unix.S_IFREG && !known[name]:
				// A name that was not written belongs to the root, with the
				// inode of the root or the index.
				var was unix.Stat_t
				if was, err = stat(w.lower, name); err == nil && was.Nlink > 1 && was.Ctim != now.Ctim {
					names = append(names, name)
				} else if errors.Is(err, fs.ErrNotExist) {
					err = nil // removed meanwhile by another process
				}
			}
			if err != nil {
				return err
			}
		}
		return err
	}
	return names, search(".")
}

// indexed reports whether the overlay has a file in its index.
func (n *native) indexed() (bool, error) {
	found, err := os.ReadDir(n.index)
	return slices.ContainsFunc(found, func(e fs.DirEntry) bool { return e.Type().IsRegular() }), err
}

// stat describes a name, and follows no symbolic link.
func stat(dir *os.File, name string) (is unix.Stat_t, err error) {
	pin, err := openBelow(dir, name, unix.O_PATH)
	if err != nil {
		return is, err
	}
	defer func() { _ = pin.Close() }()
	return is, unix.Fstat(int(pin.Fd()), &is)
}

// open opens the content of a file, or a renamed folder.
func (n *native) open(name string) (*os.File, error) {
	f, err := openBelow(n.upper, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if errors.Is(err, fs.ErrNotExist) {
		return openBelow(n.view, name, unix.O_RDONLY|unix.O_NONBLOCK)
	}
	return f, err
}
