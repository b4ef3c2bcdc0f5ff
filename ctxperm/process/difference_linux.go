package process

import (
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
	"github.com/remit-dev/remit/internal/sparse"
)

// copyDiff is what a program did to a copy.
type copyDiff struct {
	*rootCopy

	folder *os.File  // the copy
	top    fileStamp // of it, as the program left it
	known  map[uint64]bool
	names  map[uint64][]sandbox.OverlayEntry // that are as they were, of files with several
	shut   map[uint64]bool
	added  map[uint64]fs.FileMode // bits that files and directories got here, so that they can be read
	there  map[string]bool
	gone   map[string]bool
	all    []sandbox.OverlayEntry
}

// changes tells what a program did to the copy, directories before what is in them. What
// it took the right to read away from gets it back, here and not in what is told.
func (s *rootCopy) changes() ([]sandbox.OverlayEntry, error) {
	top, _, err := stampOf(s.dir)
	if err != nil {
		return nil, err
	}
	d := copyDiff{
		rootCopy: s, top: top, known: map[uint64]bool{}, names: map[uint64][]sandbox.OverlayEntry{}, shut: map[uint64]bool{}, added: map[uint64]fs.FileMode{},
		there: map[string]bool{}, gone: map[string]bool{},
	}
	for _, t := range s.seen {
		d.known[t.copy.ino] = true
		d.shut[t.copy.ino] = d.shut[t.copy.ino] || t.shut
	}
	if err = d.unlock(s.dir, top); err == nil {
		d.folder, err = os.Open(s.dir)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.folder.Close() }()
	err = filepath.WalkDir(s.dir, func(at string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return d.visit(at, below(s.dir, at))
	})
	if err != nil {
		return nil, err
	}
	d.missing()
	d.otherNames()
	slices.SortStableFunc(d.all, func(a, b sandbox.OverlayEntry) int { return strings.Compare(a.Name, b.Name) })
	return d.all, s.whole(d.all)
}

// visit looks at one name of the copy.
func (d *copyDiff) visit(at, name string) error {
	d.there[name] = true
	is, raw, err := stampOf(at)
	if err != nil {
		return err
	}
	if name == "." {
		is = d.top
	}
	old, ok := d.seen[name]
	same := ok && (old.copy == is || pipe(old.copy, is))
	if !same && d.shut[is.ino] {
		return fmt.Errorf("%s may not be read by this user, so nobody can tell what the program made of it", name)
	}
	switch is.mode & unix.S_IFMT {
	case unix.S_IFDIR:
		err = d.unlock(at, is)
	case unix.S_IFREG:
		if !same {
			err = d.unlock(at, is)
		}
	}
	if same && is.mode&unix.S_IFMT == unix.S_IFREG && raw.Nlink > 1 {
		w, err := d.look(name, is, raw)
		d.names[is.ino] = append(d.names[is.ino], w)
		return err
	}
	if same || err != nil {
		return err
	}
	if ok && old.copy.mode&unix.S_IFMT != is.mode&unix.S_IFMT {
		d.gone[name] = true // what was in it too; it is said by what came
	}
	w, err := d.look(name, is, raw)
	d.all = append(d.all, w)
	return err
}

// pipe reports whether both are one pipe, with the bits that it had. What went
// through it changed its time, and nothing that lasts.
func pipe(was, is fileStamp) bool {
	return was.mode == is.mode && is.mode&unix.S_IFMT == unix.S_IFIFO && was.ino == is.ino
}

// look describes what the program left at a name, as it is to be in the root.
func (d *copyDiff) look(name string, is fileStamp, raw unix.Stat_t) (sandbox.OverlayEntry, error) {
	w, err := sandbox.Look(d.folder, name)
	if err != nil {
		return w, err
	}
	w.Mode &^= d.added[is.ino]
	d.belong(&w, is)
	at, there := d.seen[name]
	w.Same = there && at.copy.ino == is.ino
	w.Copied, w.Links, w.Ino = d.known[is.ino], uint64(raw.Nlink), is.ino //nolint:unconvert // other widths elsewhere
	return w, nil
}

// otherNames tells of the names that are as they were, of files that got other names: all of
// them are to be one file.
func (d *copyDiff) otherNames() {
	told := map[uint64]bool{}
	for _, w := range d.all {
		if w.Kind == sandbox.File && w.Links > 1 && !told[w.Ino] {
			told[w.Ino] = true
			defer func() { d.all = append(d.all, d.names[w.Ino]...) }()
		}
	}
}

// belong says to whom belongs in the root what a program wrote: a copy may be of another owner,
// where this user may not give it to that one.
func (d *copyDiff) belong(w *sandbox.OverlayEntry, is fileStamp) {
	if old, ok := d.seen[w.Name]; ok && old.copy.ino == is.ino {
		if is.uid == old.copy.uid {
			w.Uid = old.root.uid
		}
		if is.gid == old.copy.gid {
			w.Gid = old.root.gid
		}
		return
	}
	folder, ok := d.seen[path.Dir(w.Name)]
	if ok && folder.root.mode&unix.S_ISGID != 0 && folder.root.gid != folder.copy.gid && is.gid == uint32(os.Getegid()) {
		w.Gid = folder.root.gid // the system would have given it that one
	}
}

// unlock makes something readable, and remembers for all its names what that took.
func (d *copyDiff) unlock(at string, is fileStamp) error {
	if lacking(is.mode) == 0 {
		return nil
	}
	d.added[is.ino] = fs.FileMode(lacking(is.mode))
	return unlock(at, is.mode)
}

// missing finds what the program removed.
func (d *copyDiff) missing() {
	for _, name := range slices.Sorted(maps.Keys(d.seen)) {
		if d.there[name] || d.gone[path.Dir(name)] {
			d.gone[name] = d.gone[name] || d.gone[path.Dir(name)]
			continue
		}
		d.gone[name] = true
		d.all = append(d.all, sandbox.OverlayEntry{Name: name, Kind: sandbox.Deleted})
	}
}

// open opens the content of a file that changes told of.
func (s *rootCopy) open(name string) (io.ReadCloser, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return sparse.File{File: f}, nil
}
