package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/internal/sparse"
)

// rootCopy is a copy of a root that a program sees if there is no overlay. It
// is kept between runs. Before a run it is updated from the root, which checks
// each name and copies what changed. After the run, the differences are the
// program's changes.
type rootCopy struct {
	root    string // a folder
	dir     string // its copy
	scratch *scratch
	seen    map[string]entryState
	most    folderSize // bound of the copy; zero: none
	copied  []string   // names copied last, except folders
	partly  bool       // omits names that are too long for the system, instead of failing
	long    []string   // those names, at the last update
}

// entryState is the state of a name when copy and root were last equal.
type entryState struct {
	root, copy fileStamp
	shut       bool // this user may not read it: its copy is empty and also unreadable
	fresh      bool // changed so recently that a further change may not show

	at  int64  // place in a pack, counted from 1; 0: the copy has a file of its own. See packOf
	sum uint32 // checksum of the content there
}

// fileStamp detects whether a file was touched.
type fileStamp struct {
	ino, dev     uint64
	mode         uint32
	uid, gid     uint32
	size         int64
	mtime, ctime timespec
}

// The types of files in a mode, as Unix has them.
const (
	typeMask   = 0o170000
	typeFile   = 0o100000
	typeFolder = 0o040000
	typeLink   = 0o120000
)

func (s fileStamp) folder() bool { return s.mode&typeMask == typeFolder }

// copyRefresh updates the copy from the root.
type copyRefresh struct {
	*rootCopy

	since     time.Time // an earlier change cannot be followed by one with the same time
	skip      map[string]bool
	keep      map[string]bool // changes in the copy that stay if the root is unchanged
	next      map[string]entryState
	first     map[uint64]string // one name of each file of the root that has several
	hardLinks map[uint64]bool   // files of the copy that got several names

	bulk   folderSize
	copied []string
	long   []string
	apart  bool // names of one file may have copies of their own
}

// refresh updates the copy from the root, without hidden names.
func (s *rootCopy) refresh(ctx context.Context, hidden []string, since time.Time) error {
	return s.renew(ctx, hidden, nil, since)
}

// renew is refresh, but leaves some names unchanged in the copy if those of the
// root were not touched.
func (s *rootCopy) renew(ctx context.Context, hidden []string, keep map[string]bool, since time.Time) error {
	r := copyRefresh{rootCopy: s, since: since, skip: map[string]bool{}, keep: keep, next: map[string]entryState{}, first: map[uint64]string{}, hardLinks: map[uint64]bool{}}
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

// below returns the path of a name relative to a folder.
func below(dir, at string) string {
	if at == dir {
		return "."
	}
	return at[len(dir)+1:]
}

// errUnreadable states that this user, and so the program, may not read a name at
// all.
var errUnreadable = errors.New("it may not be looked at")

// visit updates one name. The walk calls it again for a directory that cannot
// be listed.
func (r *copyRefresh) visit(name string, d fs.DirEntry, err error) error {
	t, again := r.next[name]
	switch {
	case errors.Is(err, fs.ErrPermission) && again:
		t.shut = true
	case errors.Is(err, fs.ErrPermission):
		err = errUnreadable
	case errors.Is(err, syscall.ENAMETOOLONG) && r.partly && again: // it cannot be listed
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
	case name != "." && errors.Is(err, syscall.ENAMETOOLONG) && r.partly:
		r.long = append(r.long, name)
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	case name != "." && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, errUnreadable)):
		return nil // may be gone by now
	default:
		return err
	}
}

// alike updates one name of the copy from the root, if either was touched since
// they were equal. Directories stay writable until everything is updated.
func (r *copyRefresh) alike(name string) (entryState, error) {
	from, to := filepath.Join(r.root, name), filepath.Join(r.dir, name)
	is, raw, err := stampOf(from)
	if errors.Is(err, fs.ErrPermission) {
		err = errUnreadable
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
	if known && err == nil && !old.fresh && old.root == is && old.copy == now && (raw.Nlink < 2 || r.apart) {
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
	t.fresh = t.fresh || t.shut && rereads
	t.copy, _, err = stampOf(to)
	return t, err
}

// trim removes surplus names from the copy.
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

// settle sets the bits of directories from the root, deepest first, and records
// their stamps, because added and removed entries changed them. It does the
// same for files that got another name.
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
		case !r.hardLinks[t.copy.ino]:
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

// adopt treats a program's changes in the copy as equal to the root, in which
// they were made too. Names that another process touched meanwhile are
// excluded, and the next update checks them. A program that has one of the
// files open can continue to use it.
func (s *rootCopy) adopt(all []sandbox.OverlayEntry) error {
	now, err := snapshotClock()
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
		plain := root.mode&typeMask != typeFolder
		if root.mode&0o1777 != copied.mode&0o1777 || root.mode&typeMask != copied.mode&typeMask || plain && (root.size != copied.size || root.mtime != copied.mtime) {
			continue
		}
		s.seen[w.Name] = entryState{root: root, copy: copied, fresh: !time.Unix(root.ctime.Unix()).Before(now)}
	}
	return nil
}

// forget removes a name and everything below it from the known state.
func (s *rootCopy) forget(name string) {
	for known := range s.seen {
		if known == name || strings.HasPrefix(known, name+"/") {
			delete(s.seen, known)
		}
	}
}

// open opens the content of a file in changes.
func (s *rootCopy) open(name string) (io.ReadCloser, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_RDONLY|noFollow|noWait, 0)
	if err != nil {
		return nil, err
	}
	return sparse.File{File: f}, nil
}
