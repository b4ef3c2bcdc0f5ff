//go:build !portable

package disk

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
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
	err := r.pinned(".", func(self *os.File, info Info) error {
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
func (r *linuxRoot) pinned(name string, act func(pin *os.File, info Info) error) error {
	if err := checkRootPath(name); err != nil {
		return err
	}
	pin, err := r.walk.pin(name)
	if err != nil {
		return err
	}
	defer pin.Close()
	info, err := stat(pin)
	if err != nil {
		return err
	}
	_, info.Name = split(name)
	return act(pin, info)
}

// stat describes the file of the name, a link included.
func (r *linuxRoot) stat(name string) (found Info, err error) {
	k, ok := r.walk.(*kernelWalker)
	if !ok {
		err = r.pinned(name, func(_ *os.File, info Info) error {
			found = info
			return nil
		})
		return found, err
	}
	if err := checkRootPath(name); err != nil {
		return Info{}, err
	}
	found, err = k.stat(name)
	_, found.Name = split(name)
	return found, err
}

func (r *linuxRoot) Open(name string) (File, error) {
	file, err := r.openRegular(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &openFile{file: file, name: name, holes: r.features.SyncAll}, nil
}

// openRegular checks the file before it opens it, since opening can have
// effects: wake the writer of a FIFO, rewind a tape. It checks the target of a
// final link only afterwards.
func (r *linuxRoot) openRegular(name string) (*os.File, error) {
	if err := CheckPath(name); err != nil {
		return nil, err
	}
	info, err := r.stat(name)
	if err == nil && info.Type != TypeFile && info.Type != TypeLink {
		err = ErrType
	}
	if err != nil {
		return nil, err
	}
	file, _, err := r.reopen(name)
	return file, err
}

// reopen opens a regular file for reading, without waiting if it is another
// type.
func (r *linuxRoot) reopen(name string) (*os.File, Info, error) {
	file, err := r.walk.open(name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, Info{}, err
	}
	info, err := stat(file)
	if err == nil && info.Type != TypeFile {
		err = ErrType
	}
	if err != nil {
		_ = file.Close()
		return nil, Info{}, err
	}
	return file, info, nil
}

func (r *linuxRoot) Lstat(name string) (found Info, err error) {
	found, err = r.stat(name)
	return found, pathError("lstat", name, err)
}

func (r *linuxRoot) ReadDir(name string) (entries []Info, err error) {
	err = r.directory(name, func(dir *os.File) error {
		names, err := dir.Readdirnames(-1)
		if err != nil {
			return innermost(err)
		}
		slices.Sort(names)
		entries, err = describe(dir, names)
		return err
	})
	return entries, pathError("readdir", name, err)
}

// describe reads each entry without following it.
func describe(dir *os.File, names []string) ([]Info, error) {
	entries := make([]Info, 0, len(names))
	err := control(dir, func(fd int) error {
		for _, name := range names {
			var raw unix.Stat_t
			err := unix.Fstatat(fd, name, &raw, unix.AT_SYMLINK_NOFOLLOW)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			info := infoOf(&raw)
			info.Name = strings.Clone(name)
			entries = append(entries, info)
		}
		return nil
	})
	return entries, err
}

// directory runs act on a directory opened for reading: the pinned one, through
// its own ".", so that there is no second walk.
func (r *linuxRoot) directory(name string, act func(dir *os.File) error) error {
	return r.pinned(name, func(pin *os.File, info Info) error {
		if info.Type != TypeDir {
			return ErrType
		}
		dir, err := readable(pin)
		if err != nil {
			return err
		}
		defer dir.Close()
		return act(dir)
	})
}

// readable opens a pinned directory for reading and syncing.
func readable(pin *os.File) (*os.File, error) {
	var fd int
	err := control(pin, func(at int) error {
		return interrupted(func() (err error) {
			fd, err = unix.Openat(at, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "."), nil
}

func (r *linuxRoot) Readlink(name string) (target string, err error) {
	err = r.pinned(name, func(pin *os.File, info Info) error {
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
func readlink(pin *os.File) (target string, err error) {
	err = control(pin, func(fd int) error {
		for size := 256; ; size *= 2 {
			buf := make([]byte, size)
			n, err := unix.Readlinkat(fd, "", buf)
			if err != nil {
				return err
			}
			if n < size {
				target = string(buf[:n])
				return nil
			}
		}
	})
	return target, err
}

func (r *linuxRoot) Chmod(name string, perm fs.FileMode) error {
	if err := checkPerm(perm); err != nil {
		return pathError("chmod", name, err)
	}
	err := r.pinned(name, func(pin *os.File, info Info) error {
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
	err := r.pinned(name, func(pin *os.File, _ Info) error {
		return control(pin, func(fd int) error {
			return unix.Fchownat(fd, "", int(o.User), int(o.Group), unix.AT_EMPTY_PATH)
		})
	})
	return pathError("chown", name, err)
}

func (r *linuxRoot) SetMtime(name string, t time.Time) error {
	err := r.pinned(name, func(pin *os.File, _ Info) error { return setMtime(pin, t) })
	return pathError("chtimes", name, err)
}

func (r *linuxRoot) SyncDir(name string) error {
	err := r.directory(name, func(dir *os.File) error { return innermost(dir.Sync()) })
	return pathError("sync", name, err)
}

func (r *linuxRoot) SyncAll() error {
	err := r.directory(".", func(dir *os.File) error { return control(dir, unix.Syncfs) })
	return pathError("sync", ".", err)
}

func (r *linuxRoot) Identity() Identity { return r.identity }

// Path asks the kernel, which follows a moved directory.
func (r *linuxRoot) Path() (path string, err error) {
	err = r.pinned(".", func(pin *os.File, _ Info) error {
		return control(pin, func(fd int) error {
			path, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
			return err
		})
	})
	if err != nil {
		return "", pathError("path", ".", err)
	}
	return stillThere(path, r.identity)
}

func (r *linuxRoot) Self() Self { return r.self }

func (r *linuxRoot) Features() Features { return r.features }

func (r *linuxRoot) Close() error { return innermost(r.walk.close()) }
