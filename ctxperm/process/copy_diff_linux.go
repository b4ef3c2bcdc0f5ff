package process

import (
	"fmt"
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

// copyDiff collects the changes of a program in a copy.
type copyDiff struct {
	*rootCopy

	folder *os.File  // the copy
	top    fileStamp // stamp of the copy, as the program left it
	known  map[uint64]bool
	names  map[uint64][]sandbox.OverlayEntry // unchanged names of files with several names
	shut   map[uint64]bool
	added  map[uint64]fs.FileMode // bits added to files and directories of the copy, to read them
	there  map[string]bool
	gone   map[string]bool
	all    []sandbox.OverlayEntry
}

// changes returns the changes of a program in the copy, directories before
// their entries. It restores the right to read a file in the copy, but not in
// the result.
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

// visit compares one name of the copy.
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
		return fmt.Errorf("%s may not be read by this user, so the changes of the program to it are unknown", name)
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
		d.gone[name] = true // with its entries; the new file implies that
	}
	w, err := d.look(name, is, raw)
	d.all = append(d.all, w)
	return err
}

// pipe reports whether both are one pipe with the same bits. Data that went
// through it changed only its time.
func pipe(was, is fileStamp) bool {
	return was.mode == is.mode && is.mode&unix.S_IFMT == unix.S_IFIFO && was.ino == is.ino
}

// look describes the file that the program left at a name, in its form for the
// root.
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

// otherNames adds the unchanged names of files that got other names, because
// all of them will be one file.
func (d *copyDiff) otherNames() {
	told := map[uint64]bool{}
	for _, w := range d.all {
		if w.Kind == sandbox.File && w.Links > 1 && !told[w.Ino] {
			told[w.Ino] = true
			defer func() { d.all = append(d.all, d.names[w.Ino]...) }()
		}
	}
}

// belong sets the owner that a written file gets in the root. The copy can have
// another owner, if this user may not set the right one.
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
		w.Gid = folder.root.gid // the group that the system gives it
	}
}

// unlock makes a file readable, and records the added bits for all its names.
func (d *copyDiff) unlock(at string, is fileStamp) error {
	if lacking(is.mode) == 0 {
		return nil
	}
	d.added[is.ino] = fs.FileMode(lacking(is.mode))
	return unlock(at, is.mode)
}

// missing finds the names that the program removed.
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
