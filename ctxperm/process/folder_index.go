package process

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/watch"
	"github.com/remit-dev/remit/perm"
)

// folderIndex knows which names of a folder may differ from its copy. With a
// watch, only those are looked at. Without one, or if the watch has lost events,
// all names are.
type folderIndex struct {
	watched bool        // whether to watch
	tree    *watch.Tree // nil: nothing is watched
	failed  time.Time   // when a watch failed to begin
	walked  time.Time   // when all names were looked at last

	dirty  map[string]bool // names that may differ; true: also all below it
	opened map[string]bool // files that somebody may have mapped
	linked map[string]bool // files with several names: one can change by a name elsewhere
	fresh  map[string]bool // files that are compared by content
	inodes map[uint64]bool // files that had another name meanwhile

	masks  string          // what hidden was found with
	hidden map[string]bool // masked names
}

// mayDiffer adds a name to dirty, and keeps whether all below it may differ too.
func (t *folderIndex) mayDiffer(name string) {
	if !t.dirty[name] {
		t.dirty[name] = false
	}
}

// maxUnwalked bounds how long the index relies on events alone. A file can get
// another name outside of the folder without one, and then change by it.
const maxUnwalked = 10 * time.Minute

func newFolderIndex(watched bool) folderIndex {
	return folderIndex{watched: watched, dirty: map[string]bool{}, opened: map[string]bool{}, linked: map[string]bool{}, fresh: map[string]bool{}, inodes: map[uint64]bool{}}
}

// close ends the watch.
func (x *folderIndex) close() {
	if x.tree != nil {
		x.tree.Close()
		x.tree = nil
	}
}

// lookedAt is what names of a folder are now. A zero stamp is an absent name.
type lookedAt struct {
	hidden map[string]bool
	names  map[string]fileStamp
}

// look returns all names that may differ from the copy.
func (t *folderCopy) look(ctx context.Context, d *Driver, now time.Time) (l lookedAt, err error) {
	key := strings.Join(t.Masks, "\n")
	if t.drain() && t.masks == key && now.Sub(t.walked) < maxUnwalked {
		if l.hidden, err = t.hiddenAgain(ctx, d, now); err == nil {
			l.names, err = t.examine(ctx, l.hidden)
		}
		return l, err
	}
	t.begin(now)
	if l.hidden, err = d.hiddenIn(ctx, t.usageMarker, t.root, now); err != nil {
		return l, err
	}
	if l.names, err = t.walk(ctx, l.hidden, now); err != nil {
		return l, err
	}
	t.masks, t.hidden, t.walked = key, l.hidden, now
	return l, nil
}

// drain takes over the events. It reports whether the watch has seen all since
// the last walk.
func (x *folderIndex) drain() bool {
	if x.tree == nil {
		return false
	}
	d := watch.Dirty{Names: x.dirty, Opened: x.opened, Links: x.inodes}
	if err := x.tree.Drain(&d); err != nil {
		x.close()
		return false
	}
	if d.Unsure {
		x.walked = time.Time{}
	}
	return !x.walked.IsZero()
}

// begin watches the folder, if that is wanted and possible.
func (s *snapshotStore) begin(now time.Time) {
	const pause = 5 * time.Minute // after a failure, such as too many watches of the user
	if !s.watched || s.tree != nil || len(s.seen) == 0 || !s.failed.IsZero() && now.Sub(s.failed) < pause {
		return // reading everything for the first copy would fill the queue
	}
	clear(s.opened)
	var err error
	if s.tree, err = watch.New(s.root); err != nil {
		s.tree, s.failed = nil, now
	}
}

// hiddenAgain finds the masked names after some names have changed.
func (t *folderCopy) hiddenAgain(ctx context.Context, d *Driver, now time.Time) (map[string]bool, error) {
	masks, err := patterns(t.Masks)
	if err != nil {
		return nil, err
	}
	for name := range t.hidden {
		if _, _, err := stampOf(filepath.Join(t.rootCopy.root, name)); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			delete(t.hidden, name)
		}
	}
	if len(masks) == 0 {
		return t.hidden, nil
	}
	s := search{root: t.root, name: t.Name, masks: masks, now: now}
	for name, tree := range t.dirty {
		full := path.Join(t.Folder, name)
		if base := path.Base(full); tree || isGitFolder(path.Dir(full)) && (base == "config" || base == "config.worktree") {
			found, err := d.hiddenIn(ctx, t.usageMarker, t.root, now) // by the cache of each directory
			t.hidden = found
			return found, err
		}
		if _, known := t.seen[name]; known || name == "." {
			continue
		}
		r, err := perm.FileResource(t.Name, full)
		if err != nil || s.masked(r) {
			t.hidden[name] = true
		}
	}
	return t.hidden, nil
}

// ours reports whether a name, or a folder above it, is masked or one of remit.
func (l lookedAt) ours(name string) bool {
	for at := name; at != "."; at = path.Dir(at) {
		if l.hidden[at] || stageName(path.Base(at)) {
			return true
		}
	}
	return false
}

func stageName(base string) bool {
	return len(base) >= len(files.StagePrefix) && strings.EqualFold(base[:len(files.StagePrefix)], files.StagePrefix)
}

// examine looks at the names that may differ, by the events.
func (t *folderCopy) examine(ctx context.Context, hidden map[string]bool) (map[string]fileStamp, error) {
	l := lookedAt{hidden, map[string]fileStamp{}}
	trees := map[string]bool{}
	links := maps.Clone(t.inodes)
	one := func(name string) error {
		if _, done := l.names[name]; done || l.ours(name) {
			return nil
		}
		is, raw, err := stampOf(filepath.Join(t.rootCopy.root, name))
		if err != nil && passing(err, name) != nil {
			return err
		}
		if !kept(is) {
			is = fileStamp{}
		}
		old, known := t.seen[name]
		if _, touched := t.dirty[name]; touched || !known || old.fresh || old.root != is {
			l.names[name] = is
		}
		if raw.Nlink > 1 && is.mode&typeMask == typeFile && !t.linked[name] {
			links[is.ino] = true
		}
		return nil
	}
	for name, tree := range t.dirty {
		if err := one(name); err != nil {
			return nil, err
		}
		if is := l.names[name]; tree || is.folder() && is.mode != t.seen[name].root.mode {
			trees[name] = true // also one that may not be listed any more
		}
	}
	for _, some := range []map[string]bool{t.opened, t.linked, t.fresh} {
		for name := range some {
			if err := one(name); err != nil {
				return nil, err
			}
		}
	}
	if err := t.examineTrees(ctx, l, trees, links); err != nil {
		return nil, err
	}
	err := t.examineLinks(links, one)
	if err == nil {
		clear(t.inodes) // their names are in linked now
	}
	return l.names, err
}

// examineTrees looks at everything below some directories.
func (t *folderCopy) examineTrees(ctx context.Context, l lookedAt, trees map[string]bool, links map[uint64]bool) error {
	var from []string
	known := false // whether names below one of them are in the copy
	for name := range trees {
		if l.ours(name) {
			continue
		}
		known = known || t.seen[name].root.folder()
		if l.names[name].folder() {
			from = append(from, name)
		}
	}
	s := folderScan{dir: t.rootCopy.root, skip: l.ours, known: func(string) (fileStamp, bool) { return fileStamp{}, false }}
	if len(from) > 0 {
		if err := s.scan(ctx, from...); err != nil {
			return err
		}
	}
	for _, d := range s.differ {
		l.names[d.name] = d.is
		t.mayDiffer(d.name)
		if d.links > 1 && d.is.mode&typeMask == typeFile {
			links[d.is.ino] = true
		}
	}
	if !known {
		return nil
	}
	for name := range t.seen {
		if _, there := l.names[name]; !there && belowAny(trees, name) {
			l.names[name] = fileStamp{}
			t.mayDiffer(name)
		}
	}
	return nil
}

// belowAny reports whether a name lies below one of some directories.
func belowAny(dirs map[string]bool, name string) bool {
	for at := path.Dir(name); ; at = path.Dir(at) {
		if dirs[at] {
			return true
		}
		if at == "." {
			return false
		}
	}
}

// examineLinks looks at the other names of files that got another one. No event
// names them.
func (t *folderCopy) examineLinks(links map[uint64]bool, one func(string) error) error {
	if len(links) == 0 {
		return nil
	}
	for name, old := range t.seen {
		if links[old.root.ino] && old.root.mode&typeMask == typeFile {
			t.linked[name] = true
			t.mayDiffer(name)
			if err := one(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// kept reports whether files of this type have a copy.
func kept(is fileStamp) bool {
	kind := is.mode & typeMask
	return kind == typeFile || kind == typeFolder || kind == typeLink
}

// walk looks at all names, and returns those that may differ.
func (t *folderCopy) walk(ctx context.Context, hidden map[string]bool, now time.Time) (map[string]fileStamp, error) {
	l := lookedAt{hidden, map[string]fileStamp{}}
	later := now.Add(time.Second)
	s := folderScan{dir: t.rootCopy.root, skip: l.oursHere, known: func(name string) (fileStamp, bool) {
		old, ok := t.seen[name]
		return old.root, ok && !old.fresh && time.Unix(old.root.ctime.Unix()).Before(later) // else the clock was set back, and can show the same time again
	}}
	top, _, err := stampOf(s.dir)
	switch {
	case err == nil && top.folder():
		err = s.scan(ctx, ".")
	case err == nil && kept(top):
		l.names["."] = top
	}
	if err != nil && passing(err, ".") != nil {
		return nil, err
	}
	there := len(s.matched)
	for _, d := range s.differ {
		old, known := t.seen[d.name]
		if known {
			there++
		}
		if known && old.root == d.is {
			t.mayDiffer(d.name) // equal times do not suffice
		}
		l.names[d.name] = d.is
		if d.links > 1 && d.is.mode&typeMask == typeFile {
			t.linked[d.name] = true
		}
	}
	for _, name := range s.linked {
		t.linked[name] = true
	}
	if there < len(t.seen) {
		t.absent(l.names, s.matched)
	}
	if t.tree != nil {
		for name := range l.names {
			t.mayDiffer(name)
		}
	}
	return l.names, nil
}

// oursHere is ours for a scan, which does not go below such names.
func (l lookedAt) oursHere(name string) bool { return l.hidden[name] || stageName(path.Base(name)) }

// absent adds the names that are in the copy alone.
func (t *folderCopy) absent(names map[string]fileStamp, matched []string) {
	there := make(map[string]bool, len(matched))
	for _, name := range matched {
		there[name] = true
	}
	for name := range t.seen {
		if _, differs := names[name]; !differs && !there[name] {
			names[name] = fileStamp{}
		}
	}
}
