//go:build !portable

package disk

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// linuxRoot acts on descriptors that its walker opened, so that no name is
// resolved twice by different rules.
type linuxRoot struct {
	walk     walker
	identity Identity
	features Features
	self     Self
	straight *linuxRoot // nil if the kernel cannot refuse links
}

func openRoot(dir string) (Root, error) {
	w, err := newWalker(dir)
	if err != nil {
		return nil, err
	}
	return newLinuxRoot(w)
}

func newLinuxRoot(w walker) (Root, error) {
	r := &linuxRoot{walk: w, self: self()}
	err := r.pinned(".", func(self int, info Info) error {
		r.identity = Identity{Device: info.Device, Inode: info.Inode, Created: creationTime(self)}
		r.features = featuresOf(self)
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	if k, ok := w.(*kernelWalker); ok {
		r.features.Beneath = true
		direct := &kernelWalker{root: k.root, refuse: k.refuse | unix.RESOLVE_NO_SYMLINKS}
		r.straight = &linuxRoot{walk: direct, identity: r.identity, features: r.features, self: r.self}
		r.straight.features.Straight = true
	}
	return r, nil
}

// WithoutLinks returns the view of the root whose walks follow no link. It
// lives as long as the root.
func (r *linuxRoot) WithoutLinks() Root {
	if r.straight == nil {
		return r
	}
	return r.straight
}

// pinned runs act on the file of the name, a link included.
func (r *linuxRoot) pinned(name string, act func(pin int, info Info) error) error {
	if err := checkRootPath(name); err != nil {
		return err
	}
	return r.walk.with(name, toPin, func(pin int) error {
		info, err := statOf(pin)
		if err != nil {
			return err
		}
		_, info.Name = split(name)
		return act(pin, info)
	})
}

// stat describes the file of the name, a link included.
func (r *linuxRoot) stat(name string) (found Info, err error) {
	if err := checkRootPath(name); err != nil {
		return Info{}, err
	}
	found, err = r.walk.stat(name)
	_, found.Name = split(name)
	return found, err
}

func (r *linuxRoot) Open(name string) (File, error) {
	fd, err := r.openRegular(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &openFile{descriptor: descriptor{fd: fd}, name: name, holes: r.features.SyncAll}, nil
}

// Reopen implements Reopener. The caller has checked the type, as openRegular
// does.
func (r *linuxRoot) Reopen(name string, was Info) (OpenMetadata, error) {
	if err := CheckPath(name); err != nil {
		return nil, pathError("open", name, err)
	}
	if was.Type != TypeFile {
		return nil, pathError("open", name, ErrType)
	}
	fd, err := r.walk.open(name, toRead|unix.O_NOFOLLOW)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	is, err := statOf(fd)
	if err == nil && (is.Inode != was.Inode || is.Device != was.Device || is.Size != was.Size || !is.Mtime.Equal(was.Mtime)) {
		err = ErrBusy
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, pathError("open", name, err)
	}
	return &openFile{descriptor: descriptor{fd: fd}, name: name, holes: r.features.SyncAll}, nil
}

// openRegular checks the file before it opens it, since opening can have
// effects: wake the writer of a FIFO, rewind a tape. It checks the target of a
// final link only afterwards.
func (r *linuxRoot) openRegular(name string) (fd int, err error) {
	if err := CheckPath(name); err != nil {
		return 0, err
	}
	info, err := r.stat(name)
	if err == nil && info.Type != TypeFile && info.Type != TypeLink {
		err = ErrType
	}
	if err != nil {
		return 0, err
	}
	fd, err = r.walk.open(name, toRead)
	if err != nil {
		return 0, err
	}
	if _, err := regular(fd); err != nil {
		_ = unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

// toRead opens a regular file for reading, without waiting if it is another
// type.
const toRead = unix.O_RDONLY | unix.O_NONBLOCK

// regular describes an open file, and returns ErrType for another type.
func regular(fd int) (Info, error) {
	info, err := statOf(fd)
	if err == nil && info.Type != TypeFile {
		err = ErrType
	}
	return info, err
}

func (r *linuxRoot) Lstat(name string) (found Info, err error) {
	found, err = r.stat(name)
	return found, pathError("lstat", name, err)
}

func (r *linuxRoot) ReadDir(name string) (entries []Info, err error) {
	err = r.directory(name, func(fd int) error {
		names, err := namesIn(fd)
		if err != nil {
			return err
		}
		slices.Sort(names)
		entries, err = describe(fd, names)
		return err
	})
	return entries, pathError("readdir", name, err)
}

// namesIn returns the names in an open directory, unsorted.
func namesIn(fd int) (names []string, err error) {
	buf := make([]byte, 8<<10)
	for {
		var n int
		err := interrupted(func() (err error) {
			n, err = unix.ReadDirent(fd, buf)
			return err
		})
		if err != nil || n <= 0 {
			return names, err
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// describe reads each entry without following it.
func describe(dir int, names []string) ([]Info, error) {
	entries := make([]Info, 0, len(names))
	for _, name := range names {
		var raw unix.Stat_t
		err := unix.Fstatat(dir, name, &raw, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		info := infoOf(&raw)
		info.Name = name
		entries = append(entries, info)
	}
	return entries, nil
}

// directory runs act on a directory opened for reading.
func (r *linuxRoot) directory(name string, act func(fd int) error) error {
	if err := checkRootPath(name); err != nil {
		return err
	}
	return r.walk.directory(name, act)
}

func (r *linuxRoot) Readlink(name string) (target string, err error) {
	err = r.pinned(name, func(pin int, info Info) error {
		if info.Type != TypeLink {
			return ErrType
		}
		target, err = readlink(pin)
		return err
	})
	return target, pathError("readlink", name, err)
}

// readlink grows its buffer until the target is shorter: some file systems
// report no useful size.
func readlink(pin int) (target string, err error) {
	for size := 256; ; size *= 2 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(pin, "", buf)
		if err != nil {
			return "", err
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}

func (r *linuxRoot) Chmod(name string, perm fs.FileMode) error {
	if err := checkPerm(perm); err != nil {
		return pathError("chmod", name, err)
	}
	err := r.pinned(name, func(pin int, info Info) error {
		if info.Type != TypeFile && info.Type != TypeDir {
			return ErrType
		}
		return chmod(pin, perm)
	})
	return pathError("chmod", name, err)
}

func (r *linuxRoot) Chown(name string, o Owner) error {
	if !o.Known {
		return pathError("chown", name, ErrUnsupported)
	}
	err := r.pinned(name, func(pin int, _ Info) error { return chown(pin, o) })
	return pathError("chown", name, err)
}

func (r *linuxRoot) SetMtime(name string, t time.Time) error {
	err := r.pinned(name, func(pin int, _ Info) error { return setMtime(pin, t) })
	return pathError("chtimes", name, err)
}

func (r *linuxRoot) SyncDir(name string) error {
	err := r.directory(name, fsync)
	return pathError("sync", name, err)
}

func (r *linuxRoot) SyncAll() error {
	err := r.directory(".", unix.Syncfs)
	return pathError("sync", ".", err)
}

func (r *linuxRoot) Identity() Identity { return r.identity }

// Path asks the kernel, which follows a moved directory.
func (r *linuxRoot) Path() (path string, err error) {
	err = r.walk.folder(".", func(self int) error {
		path, err = os.Readlink(procPath(self))
		return err
	})
	if err != nil {
		return "", pathError("path", ".", err)
	}
	var raw unix.Stat_t
	err = unix.Stat(path, &raw)
	if err == nil && !r.identity.Is(Identity{Device: raw.Dev, Inode: raw.Ino}) {
		err = ErrEscape
	}
	if err != nil {
		return "", pathError("path", path, err)
	}
	return path, nil
}

func (r *linuxRoot) Self() Self { return r.self }

func (r *linuxRoot) Features() Features { return r.features }

func (r *linuxRoot) Close() error { return innermost(r.walk.close()) }
