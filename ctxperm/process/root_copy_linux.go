package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/sandbox"
)

// rootCopy is the other way to know what a program does, where there is no overlay: a
// copy of a root that the program is shown in its place, kept between runs. Before a run
// it is made like the root, which costs a look at each name and a copy of what changed;
// after it, what differs from that is what the program did.
type rootCopy struct {
	root    string // a folder
	dir     string // its copy
	scratch *scratch
	seen    map[string]entryState
	most    folderSize // of what is copied; zero: there is no limit
	copied  []string   // the last time, but for folders
	partly  bool       // names that are too long for the system are left out, instead of being an error
	long    []string   // those names, the last time
}

// entryState is what a name was when copy and root were last alike.
type entryState struct {
	root, copy fileStamp
	shut       bool // this user may not read it: its copy holds nothing, and may not be read either
	fresh      bool // it was touched so lately that it would not be told if it was touched again
}

// fileStamp tells whether a file was touched.
type fileStamp struct {
	ino, dev     uint64
	mode         uint32
	uid, gid     uint32
	size         int64
	mtime, ctime unix.Timespec
}

func stampOf(path string) (fileStamp, unix.Stat_t, error) {
	var is unix.Stat_t
	if err := unix.Lstat(path, &is); err != nil {
		return fileStamp{}, is, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return fileStamp{ino: is.Ino, dev: is.Dev, mode: is.Mode, uid: is.Uid, gid: is.Gid, size: is.Size, mtime: is.Mtim, ctime: is.Ctim}, is, nil
}

func (s fileStamp) folder() bool { return s.mode&unix.S_IFMT == unix.S_IFDIR }

// copyRefresh makes the copy like the root once more.
type copyRefresh struct {
	*rootCopy

	since time.Time // nothing that was touched before is touched again at its time
	skip  map[string]bool
	keep  map[string]bool // what was changed in the copy and is to stay so where the root was not
	next  map[string]entryState
	first map[uint64]string // one name of each file of the root that has several
	twins map[uint64]bool   // the files of the copy that got several

	bulk   folderSize
	copied []string
	long   []string
}

// refresh makes the copy like the root, but for what is hidden.
func (s *rootCopy) refresh(ctx context.Context, hidden []string, since time.Time) error {
	return s.renew(ctx, hidden, nil, since)
}

// renew is refresh, which leaves some names as they are in the copy where those of the root were not touched.
func (s *rootCopy) renew(ctx context.Context, hidden []string, keep map[string]bool, since time.Time) error {
	r := copyRefresh{rootCopy: s, since: since, skip: map[string]bool{}, keep: keep, next: map[string]entryState{}, first: map[uint64]string{}, twins: map[uint64]bool{}}
	for _, name := range hidden {
		r.skip[name] = true
	}
	err := filepath.WalkDir(s.root, func(at string, d fs.DirEntry, err error) error {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return r.visit(below(s.root, at), d, err)
	})
	if err == nil {
		err = r.trim()
	}
	if err == nil {
		err = r.settle()
	}
	if err != nil {
		return fmt.Errorf("the copy of root %s: %w", s.root, err)
	}
	s.seen, s.copied, s.long = r.next, r.copied, r.long
	return nil
}

// below is the name that a walk of a folder came to, in that folder.
func below(dir, at string) string {
	if at == dir {
		return "."
	}
	return at[len(dir)+1:]
}

// errUnseen says that this user, and so the program, may not look at something at all.
var errUnseen = errors.New("it may not be looked at")

// visit makes one name alike. It comes a second time for a directory that cannot be
// listed.
func (r *copyRefresh) visit(name string, d fs.DirEntry, err error) error {
	t, again := r.next[name]
	switch {
	case errors.Is(err, fs.ErrPermission) && again:
		t.shut = true
	case errors.Is(err, fs.ErrPermission):
		err = errUnseen
	case errors.Is(err, unix.ENAMETOOLONG) && r.partly && again: // it cannot be listed
		r.long = append(r.long, name)
		return nil
	case err == nil && r.skip[name] && d.IsDir():
		return fs.SkipDir
	case err == nil && r.skip[name]:
		return nil
	case err == nil:
		t, err = r.alike(name)
	}
	switch {
	case err == nil || t.shut:
		r.next[name] = t
		return nil
	case name != "." && errors.Is(err, unix.ENAMETOOLONG) && r.partly:
		r.long = append(r.long, name)
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	case name != "." && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, errUnseen)):
		return nil // gone by now, perhaps
	default:
		return err
	}
}

// alike makes one name of the copy like that of the root, if either was touched since
// they were alike. Directories stay open until everything is.
func (r *copyRefresh) alike(name string) (entryState, error) {
	from, to := filepath.Join(r.root, name), filepath.Join(r.dir, name)
	is, raw, err := stampOf(from)
	if errors.Is(err, fs.ErrPermission) {
		err = errUnseen
	}
	if err != nil {
		return entryState{}, err
	}
	if err := r.bulk.add(is, r.most); err != nil {
		return entryState{}, err
	}
	old, known := r.seen[name]
	if known && r.keep[name] && old.root == is {
		return old, nil
	}
	now, _, err := stampOf(to)
	if err == nil && now.folder() {
		if err := unlock(to, now.mode); err != nil {
			return entryState{}, err
		}
	}
	if known && err == nil && !old.fresh && old.root == is && old.copy == now && raw.Nlink < 2 {
		return old, nil
	}
	if !is.folder() || !now.folder() {
		if err := sandbox.Discard(to); err != nil {
			return entryState{}, err
		}
	}
	if !is.folder() {
		r.copied = append(r.copied, name)
	}
	t := entryState{root: is, fresh: !time.Unix(is.ctime.Unix()).Before(r.since)}
	if t.shut, err = r.make(from, to, raw, name); err != nil {
		return entryState{}, err
	}
	t.copy, _, err = stampOf(to)
	return t, err
}

// trim removes what is in the copy and should not be.
func (r *copyRefresh) trim() error {
	var extra []string
	err := filepath.WalkDir(r.dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if _, ok := r.next[below(r.dir, at)]; !ok && !r.keep[below(r.dir, at)] {
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

// settle gives directories the bits that they have in the root, from below, and notes
// what they are then: making and removing entries changed them. What got another name
// was changed by that too.
func (r *copyRefresh) settle() (err error) {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(r.next))) {
		t, at := r.next[name], filepath.Join(r.dir, name)
		switch {
		case r.keep[name] && name != ".":
			continue
		case t.copy.folder() && t.shut:
			err = chmod(at, 0)
		case t.copy.folder():
			err = chmod(at, t.root.mode&0o7777)
		case !r.twins[t.copy.ino]:
			continue
		}
		if err == nil {
			t.copy, _, err = stampOf(at)
		}
		if err != nil {
			return err
		}
		r.next[name] = t
	}
	return nil
}

// adopt takes what a program did to the copy for alike with the root, in which it was made too. What somebody touched
// there meanwhile is not: the next renewal looks at it. A program that has one of the files open goes on with it.
func (s *rootCopy) adopt(all []sandbox.OverlayEntry) error {
	now, err := sandbox.Now()
	if err != nil {
		return err
	}
	for _, w := range all {
		if w.Kind == sandbox.Deleted {
			s.forget(w.Name)
			continue
		}
		if w.Replaced {
			s.forget(w.Name)
		}
		root, _, err := stampOf(filepath.Join(s.root, w.Name))
		if err != nil {
			continue // gone by now
		}
		copied, _, err := stampOf(filepath.Join(s.dir, w.Name))
		if err != nil {
			continue
		}
		plain := root.mode&unix.S_IFMT != unix.S_IFDIR
		if root.mode&0o1777 != copied.mode&0o1777 || root.mode&unix.S_IFMT != copied.mode&unix.S_IFMT || plain && (root.size != copied.size || root.mtime != copied.mtime) {
			continue
		}
		s.seen[w.Name] = entryState{root: root, copy: copied, fresh: !time.Unix(root.ctime.Unix()).Before(now)}
	}
	return nil
}

// forget forgets a name and all below it.
func (s *rootCopy) forget(name string) {
	for known := range s.seen {
		if known == name || strings.HasPrefix(known, name+"/") {
			delete(s.seen, known)
		}
	}
}
