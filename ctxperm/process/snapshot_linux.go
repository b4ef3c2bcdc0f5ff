package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/sandbox"
)

// snapshot is the other way to know what a program does, where there is no overlay: a
// copy of a root that the program is shown in its place, kept between runs. Before a run
// it is made like the root, which costs a look at each name and a copy of what changed;
// after it, what differs from that is what the program did.
type snapshot struct {
	root    string // a folder
	dir     string // its copy
	scratch *scratch
	seen    map[string]twin
}

// twin is what a name was when copy and root were last alike.
type twin struct{ root, copy stamp }

// stamp tells whether a file was touched.
type stamp struct {
	ino, dev     uint64
	mode         uint32
	size         int64
	mtime, ctime unix.Timespec
}

func stampOf(path string) (stamp, unix.Stat_t, error) {
	var is unix.Stat_t
	if err := unix.Lstat(path, &is); err != nil {
		return stamp{}, is, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return stamp{ino: is.Ino, dev: is.Dev, mode: is.Mode, size: is.Size, mtime: is.Mtim, ctime: is.Ctim}, is, nil
}

// entered is the stamp of a directory without what changes with its entries.
func (s stamp) entered() stamp {
	if s.mode&unix.S_IFMT == unix.S_IFDIR {
		s.size, s.mtime, s.ctime = 0, unix.Timespec{}, unix.Timespec{}
	}
	return s
}

// refresh makes the copy like the root, but for what is hidden.
func (s *snapshot) refresh(ctx context.Context, hidden []string) error {
	skip := map[string]bool{}
	for _, name := range hidden {
		skip[name] = true
	}
	next, first := map[string]twin{}, map[uint64]string{}
	err := filepath.WalkDir(s.root, func(at string, d fs.DirEntry, err error) error {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		name, rerr := filepath.Rel(s.root, at)
		if err != nil || rerr != nil {
			if d != nil && d.IsDir() && errors.Is(err, fs.ErrPermission) {
				return fs.SkipDir // the program could not look either
			}
			return errors.Join(err, rerr)
		}
		if skip[name] {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		t, err := s.alike(name, first)
		if errors.Is(err, fs.ErrNotExist) && name != "." {
			return nil // it is gone by now
		}
		if err == nil {
			next[name] = t
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the copy of root %s: %w", s.root, err)
	}
	if err := s.trim(next); err != nil {
		return fmt.Errorf("the copy of root %s: %w", s.root, err)
	}
	for name, t := range next { // making and removing entries changed the directories
		if t.copy.mode&unix.S_IFMT == unix.S_IFDIR {
			if t.copy, _, err = stampOf(filepath.Join(s.dir, name)); err != nil {
				return err
			}
			next[name] = t
		}
	}
	s.seen = next
	return nil
}

// alike makes one name of the copy like that of the root, if either was touched since
// they were alike.
func (s *snapshot) alike(name string, first map[uint64]string) (twin, error) {
	from, to := filepath.Join(s.root, name), filepath.Join(s.dir, name)
	is, raw, err := stampOf(from)
	if err != nil {
		return twin{}, err
	}
	old, known := s.seen[name]
	now, _, err := stampOf(to)
	if known && err == nil && old.root.entered() == is.entered() && old.copy.entered() == now.entered() && raw.Nlink < 2 {
		return twin{is, now}, nil
	}
	if raw.Mode&unix.S_IFMT != unix.S_IFDIR || now.mode&unix.S_IFMT != unix.S_IFDIR {
		if err := sandbox.Discard(to); err != nil {
			return twin{}, err
		}
	}
	if err := s.make(from, to, raw, first, name); err != nil {
		return twin{}, err
	}
	now, _, err = stampOf(to)
	return twin{is, now}, err
}

// make copies one name.
func (s *snapshot) make(from, to string, is unix.Stat_t, first map[uint64]string, name string) error {
	switch is.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	case unix.S_IFLNK:
		target, err := os.Readlink(from)
		if err == nil {
			err = os.Symlink(target, to)
		}
		return err
	case unix.S_IFREG:
		if other := first[is.Ino]; other != "" && is.Nlink > 1 {
			return os.Link(filepath.Join(s.dir, other), to)
		}
		first[is.Ino] = name
		if err := copyFile(from, to); err != nil {
			return err
		}
	default:
		return nil // a socket or a pipe leads nowhere in a copy
	}
	return dress(from, to, is)
}

// copyFile shares the content of a file where the file system can.
func copyFile(from, to string) error {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = unix.IoctlFileClone(int(out.Fd()), int(in.Fd()))
	if err != nil {
		_, err = io.Copy(out, in)
	}
	return errors.Join(err, out.Close())
}

// dress gives a copy the attributes, bits and time of a file.
func dress(from, to string, is unix.Stat_t) error {
	names := make([]byte, 64<<10)
	n, err := unix.Listxattr(from, names)
	if err != nil && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	for name := range strings.SplitSeq(string(names[:max(n, 0)]), "\x00") {
		if !strings.HasPrefix(name, "user.") {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Getxattr(from, name, value)
		if err == nil {
			err = unix.Setxattr(to, name, value[:n], 0)
		}
		if err != nil {
			return err
		}
	}
	if err := unix.Chmod(to, is.Mode&0o1777); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, to, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, is.Mtim}, 0)
}

// trim removes what is in the copy and should not be.
func (s *snapshot) trim(next map[string]twin) error {
	var extra []string
	err := filepath.WalkDir(s.dir, func(at string, d fs.DirEntry, err error) error {
		name, rerr := filepath.Rel(s.dir, at)
		if err != nil || rerr != nil {
			return errors.Join(err, rerr)
		}
		if _, ok := next[name]; !ok {
			extra = append(extra, at)
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	for _, at := range extra {
		err = errors.Join(err, sandbox.Discard(at))
	}
	return err
}

// changes tells what a program did to the copy, directories before what is in them.
func (s *snapshot) changes() (all []sandbox.Written, err error) {
	there, gone := map[string]bool{}, map[string]bool{}
	known := map[uint64]bool{}
	for _, t := range s.seen {
		known[t.copy.ino] = true
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	err = filepath.WalkDir(s.dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil && d != nil && d.IsDir() && errors.Is(err, fs.ErrPermission) {
			if err = os.Chmod(at, 0o700); err == nil { // the bits are read before
				return nil
			}
		}
		name, rerr := filepath.Rel(s.dir, at)
		if err != nil || rerr != nil {
			return errors.Join(err, rerr)
		}
		there[name] = true
		is, raw, err := stampOf(at)
		if err != nil {
			return err
		}
		old, ok := s.seen[name]
		if ok && old.copy == is {
			return nil
		}
		if ok && old.copy.mode&unix.S_IFMT != is.mode&unix.S_IFMT {
			gone[name] = true // what was in it too; it is said by what came
		}
		w, err := sandbox.Look(dir, name)
		if err != nil {
			return err
		}
		w.Copied, w.Links, w.Ino = known[raw.Ino], raw.Nlink, raw.Ino
		all = append(all, w)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.seen)) {
		if there[name] || gone[path.Dir(name)] {
			gone[name] = gone[name] || gone[path.Dir(name)]
			continue
		}
		gone[name] = true
		all = append(all, sandbox.Written{Name: name, Kind: sandbox.Deleted})
	}
	slices.SortStableFunc(all, func(a, b sandbox.Written) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// open opens the content of a file that changes told of.
func (s *snapshot) open(name string) (io.ReadCloser, error) {
	return os.OpenFile(filepath.Join(s.dir, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}
