package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// mask holds the events of a directory. IN_OPEN is there for mapped files: a
// program writes into a mapping without any event, and only its IN_CLOSE_WRITE,
// after the last unmapping, tells.
const mask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MODIFY | unix.IN_ATTRIB |
	unix.IN_CLOSE_WRITE | unix.IN_OPEN | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF |
	unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW | unix.IN_EXCL_UNLINK

// maxOpened bounds the files that were opened since the last pruning. Above it,
// Drain prunes itself. Above manyOpened, it has that done while its caller
// continues.
const (
	maxOpened  = 4096
	manyOpened = 256
)

// Tree watches a folder and everything below it. Its methods are safe for
// concurrent use.
type Tree struct {
	dir    string
	file   *os.File // the inotify queue
	fd     int
	mounts string // mounts in the folder, when the watch began
	inode  unix.Stat_t

	mu     sync.Mutex // held over system calls that do not wait
	paths  map[int32]string
	wds    map[string]int32
	below  map[string]map[string]bool // watched subdirectories
	names  map[string]bool
	opened map[string]bool
	older  map[string]bool // opened, but before prunings began that have not ended
	prunes bool            // pruneApart runs
	still  int             // how many files the last pruning found open
	blind  map[string]bool // directories that this user may not list
	born   map[string]bool // names that came since the queue was empty
	leaves uint32          // cookie of a name in born that was moved; 0: none
	passes uint32          // cookie of another name that was moved, whose file is known; 0: none
	doubt  int             // how many answers of Drain are left until a walk has seen all files
	links  map[uint64]bool
	unsure bool
	moved  bool // a directory was moved: names in opened may be old
	buffer []byte
	err    error // wraps ErrStale
}

// New watches a folder. Events begin before New returns: whoever walks the
// folder afterwards misses nothing.
//
// The kernel does not report some changes. New refuses file systems that others
// can change (network, FUSE, overlay), and folders in which others are mounted.
// Files that processes have open or mapped for writing at that time count as
// opened, except those of processes that this user may not inspect. A change
// through a name of the file outside of the folder is not reported: look at
// files that have several names each time, and walk from time to time.
func New(dir string) (*Tree, error) {
	mounts, err := mountsIn(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	if err := suitable(dir, mounts); err != nil {
		return nil, err
	}
	var is unix.Stat_t
	if err := unix.Lstat(dir, &is); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	t := &Tree{
		dir: dir, fd: fd, file: os.NewFile(uintptr(fd), "inotify"), mounts: mounts, inode: is,
		paths: map[int32]string{}, wds: map[string]int32{}, below: map[string]map[string]bool{},
		names: map[string]bool{}, opened: map[string]bool{}, blind: map[string]bool{}, born: map[string]bool{}, links: map[uint64]bool{}, buffer: make([]byte, 64<<10),
	}
	t.add(".")
	if t.err == nil && len(t.wds) == 0 {
		t.stale("it is no directory")
	}
	if t.err != nil {
		t.Close()
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, t.err)
	}
	t.opened = openedIn(dir)
	clear(t.names)
	t.doubt = 1 // the caller walks after this
	announced.watching(1)
	go t.follow()
	return t, nil
}

// Close ends the watch.
func (t *Tree) Close() {
	t.mu.Lock()
	first := t.fd >= 0
	t.fd = -1
	t.stale("the watch was closed")
	t.mu.Unlock()
	if first { // without the lock: it waits for follow to look once more
		announced.watching(-1)
		_ = t.file.Close()
	}
}

// Drain moves the names of all events that the kernel has reported so far to d.
// The kernel reports a change before the system call that makes it returns. An
// error wraps ErrStale.
func (t *Tree) Drain(d *Dirty) error {
	now, err := mountsIn(t.dir)
	var is unix.Stat_t
	same := unix.Lstat(t.dir, &is) == nil && is.Dev == t.inode.Dev && is.Ino == t.inode.Ino
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil || now != t.mounts:
		t.stale("file systems were mounted or unmounted")
	case !same:
		t.stale("another folder is in its place")
	}
	t.read()
	t.prune(maxOpened)
	if t.err != nil {
		return t.err
	}
	for name := range t.blind {
		t.names[name] = true
	}
	for name, tree := range t.names {
		d.Names[name] = d.Names[name] || tree
	}
	clear(t.names)
	for ino := range t.links {
		d.Links[ino] = true
	}
	if t.doubt = max(0, t.doubt-1); t.unsure {
		t.doubt = 2 // the caller walks after this answer, so until the next one
	}
	d.Unsure = d.Unsure || t.unsure
	t.unsure = false
	clear(t.links)
	clear(d.Opened)
	for _, some := range []map[string]bool{t.opened, t.older} {
		for name := range some {
			d.Opened[name] = true
		}
	}
	t.pruneSoon(manyOpened + 2*t.still)
	return nil
}

// follow empties the queue whenever something is in it, so that it does not
// overflow between two calls of Drain.
func (t *Tree) follow() {
	raw, err := t.file.SyscallConn()
	if err != nil {
		return
	}
	for {
		done := false
		err := raw.Read(func(uintptr) bool {
			t.mu.Lock()
			defer t.mu.Unlock()
			got := t.read()
			t.pruneSoon(max(maxOpened/2, 2*t.still)) // now, rather than while somebody waits
			done = t.err != nil
			return got || done
		})
		if err != nil || done {
			return
		}
	}
}

// read handles all events in the queue. It reports whether there were any. The
// caller holds the lock.
func (t *Tree) read() (any bool) {
	for t.err == nil {
		n, err := unix.Read(t.fd, t.buffer)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			t.unsure = t.unsure || t.leaves != 0
			t.leaves, t.passes = 0, 0
			clear(t.born)
			return any
		case err != nil || n < unix.SizeofInotifyEvent:
			t.stale(fmt.Sprint("reading the events: ", err))
			return any
		}
		any = true
		for rest := t.buffer[:n]; len(rest) >= unix.SizeofInotifyEvent && t.err == nil; {
			wd, bits := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:])
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			t.event(wd, bits, binary.NativeEndian.Uint32(rest[8:]), strings.TrimRight(string(rest[unix.SizeofInotifyEvent:end]), "\x00"))
			rest = rest[end:]
		}
	}
	return any
}

// event handles one event.
func (t *Tree) event(wd int32, bits, cookie uint32, base string) {
	if bits&unix.IN_Q_OVERFLOW != 0 {
		t.stale("there were more events than the queue takes (fs.inotify.max_queued_events)")
		return
	}
	dir, known := t.paths[wd]
	if !known {
		return // of a directory that was moved away since: its name is dirty with all below it
	}
	if bits&(unix.IN_UNMOUNT|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0 && dir == "." || bits&unix.IN_UNMOUNT != 0 {
		t.stale("the folder itself was moved, removed or unmounted")
		return
	}
	if bits&unix.IN_IGNORED != 0 {
		t.forget(dir, false)
		return
	}
	if base == "" {
		t.itself(dir, bits)
		return
	}
	name, folder := path.Join(dir, base), bits&unix.IN_ISDIR != 0
	if !folder {
		t.another(name, bits, cookie)
	}
	switch {
	case bits&unix.IN_OPEN != 0:
		if !folder {
			t.opened[name] = true
		}
	case folder && bits&(unix.IN_MOVED_FROM|unix.IN_DELETE) != 0:
		t.forget(name, true)
		t.names[name] = true
	case folder && bits&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 || folder && t.blind[name]:
		t.names[name] = true
		t.unsure = true // names can have come and gone in it before it was watched
		t.moved = t.moved || bits&unix.IN_MOVED_TO != 0
		t.add(name)
	case bits&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		t.changed(name)
		t.opened[name] = true // somebody may have had it open by another name
	default:
		t.changed(name)
	}
	if bits&(unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0 {
		t.changed(dir) // its time
	}
}

// changed notes that a name changed, and keeps the note that everything below it
// may have changed too.
func (t *Tree) changed(name string) {
	if !t.names[name] {
		t.names[name] = false
	}
}

// another finds out whether a new name is one of a file with several names. A
// look at the name tells only if it did not go or come again since: all events
// until then are read before the queue is empty. Two kinds of names need no look:
// one to which a file moved from a name that was there before, whose other names
// are known, and one that this process announced.
func (t *Tree) another(name string, bits, cookie uint32) {
	const comes, goes = unix.IN_CREATE | unix.IN_MOVED_TO, unix.IN_DELETE | unix.IN_MOVED_FROM
	if bits&(comes|goes) == 0 {
		return
	}
	t.unsure = t.unsure || t.leaves != 0 && (bits&unix.IN_MOVED_TO == 0 || cookie != t.leaves)
	known := bits&unix.IN_MOVED_TO != 0 && t.passes != 0 && cookie == t.passes || bits&unix.IN_CREATE != 0 && announced.take(path.Base(name))
	t.leaves, t.passes = 0, 0
	switch {
	case !t.born[name]:
		if bits&unix.IN_MOVED_FROM != 0 && t.doubt == 0 && !t.unsure {
			t.passes = cookie
		}
	case bits&unix.IN_MOVED_FROM != 0:
		t.leaves = cookie // where it goes tells
	default:
		t.unsure = true
	}
	delete(t.born, name)
	if bits&comes == 0 || known {
		return
	}
	t.born[name] = true
	var is unix.Stat_t
	switch err := unix.Lstat(filepath.Join(t.dir, name), &is); {
	case err != nil: // its event follows, or that of a folder above it
		t.unsure = t.unsure || !errors.Is(err, unix.ENOENT)
	case is.Nlink > 1 && is.Mode&unix.S_IFMT == unix.S_IFREG:
		t.links[is.Ino] = true
	}
}

// itself handles an event of a watched directory, not of an entry.
func (t *Tree) itself(dir string, bits uint32) {
	if bits&(unix.IN_ATTRIB|unix.IN_MODIFY) != 0 {
		t.changed(dir)
	}
}

// add watches a directory and everything below it. It watches before it lists:
// what comes later is reported, and the caller marks all as dirty. Names that
// vanish meanwhile have events of their own.
func (t *Tree) add(dir string) {
	at := filepath.Join(t.dir, dir)
	wd, err := unix.InotifyAddWatch(t.fd, at, mask)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return
	case errors.Is(err, fs.ErrPermission):
		t.blind[dir] = true
		return
	case errors.Is(err, unix.ENOSPC):
		t.stale("the user has too many watches (fs.inotify.max_user_watches)")
		return
	case err != nil:
		t.stale(fmt.Sprintf("watching %s: %v", dir, err))
		return
	}
	delete(t.blind, dir)
	if was, again := t.paths[int32(wd)]; again && was != dir { // moved meanwhile: its events follow
		t.drop(was)
	}
	t.paths[int32(wd)], t.wds[dir] = dir, int32(wd)
	if dir != "." {
		up := path.Dir(dir)
		if t.below[up] == nil {
			t.below[up] = map[string]bool{}
		}
		t.below[up][dir] = true
	}
	found, err := os.ReadDir(at)
	if errors.Is(err, fs.ErrPermission) {
		t.blind[dir] = true
		return
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		t.stale(fmt.Sprintf("listing %s: %v", dir, err))
		return
	}
	for _, e := range found {
		switch name := path.Join(dir, e.Name()); {
		case t.err != nil:
			return
		case e.IsDir():
			t.add(name)
		default:
			t.opened[name] = true // before the watch began
		}
	}
}

// forget ends the watches of a directory and of all below it.
func (t *Tree) forget(dir string, remove bool) {
	for sub := range t.below[dir] {
		t.forget(sub, true)
	}
	wd, watched := t.wds[dir]
	t.drop(dir)
	if watched && remove {
		_, _ = unix.InotifyRmWatch(t.fd, uint32(wd))
	}
}

// drop removes one directory from the maps.
func (t *Tree) drop(dir string) {
	if wd, ok := t.wds[dir]; ok {
		delete(t.paths, wd)
	}
	delete(t.wds, dir)
	delete(t.blind, dir)
	if all := t.below[path.Dir(dir)]; all != nil {
		if delete(all, dir); len(all) == 0 {
			delete(t.below, path.Dir(dir))
		}
	}
}

// prune keeps only the opened files that somebody still has open for writing,
// if there are many, or if their names may be old. Those that somebody closed
// after writing had an event of their own.
func (t *Tree) prune(most int) {
	if t.err != nil || len(t.opened) <= most && !t.moved {
		return
	}
	t.moved = false
	clear(t.opened)
	still := openedIn(t.dir)
	t.read() // adds what was opened while this process looked
	t.remain(still)
}

// pruneSoon has the opened files pruned, if there are many.
func (t *Tree) pruneSoon(most int) {
	if t.err != nil || t.prunes || len(t.opened) <= most {
		return
	}
	t.prunes, t.older, t.opened = true, t.opened, map[string]bool{}
	go t.pruneApart()
}

// pruneApart is prune without the lock while it looks at all processes, which
// takes long. Meanwhile Drain returns the earlier names too, and events add new
// ones. If a directory moves meanwhile, the next Drain prunes again.
func (t *Tree) pruneApart() {
	still := openedIn(t.dir)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prunes, t.older = false, nil
	t.remain(still)
}

// remain adds what is still open after a pruning.
func (t *Tree) remain(still map[string]bool) {
	t.still = len(still)
	for name := range still {
		t.opened[name] = true
	}
}

func (t *Tree) stale(why string) {
	if t.err == nil {
		t.err = fmt.Errorf("%w: %s", ErrStale, why)
	}
}
