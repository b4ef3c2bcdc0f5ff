//go:build !portable

package disk

import (
	"path"

	"golang.org/x/sys/unix"
)

// PinFolder implements FolderPinner.
func (r *linuxRoot) PinFolder(name string) (Root, error) {
	k, ok := r.walk.(*kernelWalker)
	if !ok {
		return nil, pathError("pin", name, ErrUnsupported)
	}
	if err := checkRootPath(name); err != nil {
		return nil, pathError("pin", name, err)
	}
	fd, err := k.open(name, toPin|unix.O_DIRECTORY)
	if err != nil {
		return nil, pathError("pin", name, err)
	}
	view := *r
	view.straight, view.walk = nil, &folderWalker{kernelWalker: k, name: name, held: descriptor{fd: fd}}
	return &view, nil
}

// folderWalker walks from an open directory to that directory and its entries,
// and from the root to everything else.
type folderWalker struct {
	*kernelWalker
	name string
	held descriptor
}

// at runs act with the descriptor from which to walk, and the rest of the name.
func (w *folderWalker) at(name string, act func(from int, rest string) error) error {
	rest := "."
	if name != w.name {
		if name == "." || path.Dir(name) != w.name {
			return control(w.root, func(root int) error { return act(root, name) })
		}
		rest = path.Base(name)
	}
	return w.held.use(func(held int) error { return act(held, rest) })
}

func (w *folderWalker) with(name string, flags int, act func(fd int) error) error {
	return w.at(name, func(from int, rest string) error {
		if rest == "." && flags == toPin {
			return act(from) // it is pinned already
		}
		return w.withAt(from, rest, flags, act)
	})
}

func (w *folderWalker) open(name string, flags int) (fd int, err error) {
	err = w.at(name, func(from int, rest string) error {
		fd, err = w.openAt(from, rest, flags)
		return err
	})
	return fd, err
}

func (w *folderWalker) stat(name string) (info Info, err error) {
	err = w.at(name, func(from int, rest string) error {
		if rest == "." {
			info, err = statOf(from)
			return err
		}
		info, err = w.statAt(from, rest)
		return err
	})
	return info, err
}

func (w *folderWalker) folder(name string, act func(fd int) error) error {
	return w.at(name, func(from int, rest string) error {
		if rest == "." {
			return act(from)
		}
		return w.withAt(from, rest, unix.O_PATH|unix.O_DIRECTORY, act)
	})
}

func (w *folderWalker) directory(name string, act func(fd int) error) error {
	return w.at(name, func(from int, rest string) error { return w.directoryAt(from, rest, act) })
}

// close leaves the root open.
func (w *folderWalker) close() error { return w.held.close() }
