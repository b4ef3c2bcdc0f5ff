//go:build !portable

package process

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"
)

// scanWorkers is how many directories are read at once. Tests that change the
// user of one thread set it to one.
var scanWorkers = 2

// namedStamp is one name that a scan found different from what is known.
type namedStamp struct {
	name  string
	is    fileStamp
	links uint64
}

// folderScan compares all names below a folder with those that are known. It
// opens each directory once, and describes its entries by its descriptor.
type folderScan struct {
	dir   string
	skip  func(name string) bool
	known func(name string) (fileStamp, bool) // what is known of a name; called by several goroutines

	mu      sync.Mutex // never held across a wait
	wake    *sync.Cond
	queue   []string
	busy    int
	err     error
	differ  []namedStamp
	matched []string
	linked  []string // matched files that have several names
}

// scan reads a folder from some directories on. The directories themselves are
// compared too.
func (s *folderScan) scan(ctx context.Context, from ...string) error {
	s.wake = sync.NewCond(&s.mu)
	top, err := unix.Open(s.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: s.dir, Err: err}
	}
	defer func() { _ = unix.Close(top) }()
	first := scanWorker{folderScan: s, top: top}
	for _, name := range from {
		if err := first.one(top, name, name); err != nil {
			return err
		}
	}
	first.deliver()
	var all sync.WaitGroup
	work := func() {
		w := scanWorker{folderScan: s, top: top, buffer: make([]byte, 32<<10)}
		w.run(ctx)
	}
	for range scanWorkers - 1 {
		all.Go(work)
	}
	work()
	all.Wait()
	return s.err
}

// next waits for a directory to read; false: there are no more.
func (s *folderScan) next() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && s.busy > 0 && s.err == nil {
		s.wake.Wait()
	}
	if len(s.queue) == 0 || s.err != nil {
		return "", false
	}
	last := s.queue[len(s.queue)-1]
	s.queue = s.queue[:len(s.queue)-1]
	s.busy++
	return last, true
}

// scanWorker is one goroutine of a scan, with what it found since it delivered.
type scanWorker struct {
	*folderScan

	top     int
	buffer  []byte
	names   []string
	subs    []string
	differs []namedStamp
	matches []string
	links   []string
}

func (w *scanWorker) run(ctx context.Context) {
	for {
		dir, ok := w.next()
		if !ok {
			return
		}
		err := context.Cause(ctx)
		if err == nil {
			err = w.list(dir)
		}
		w.deliver()
		w.mu.Lock()
		w.busy--
		if err != nil && w.err == nil {
			w.err = err
		}
		w.wake.Broadcast()
		w.mu.Unlock()
	}
}

// deliver adds what the worker found to the scan.
func (w *scanWorker) deliver() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, w.subs...)
	w.differ, w.matched, w.linked = append(w.differ, w.differs...), append(w.matched, w.matches...), append(w.linked, w.links...)
	w.subs, w.differs, w.matches, w.links = w.subs[:0], w.differs[:0], w.matches[:0], w.links[:0]
	w.wake.Broadcast()
}

// list compares the entries of one directory. It lists nothing of one that is
// gone by now, or that this user may not read.
func (w *scanWorker) list(dir string) error {
	fd, err := unix.Openat(w.top, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return passing(err, dir)
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		n, err := unix.ReadDirent(fd, w.buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return passing(err, dir)
		}
		_, _, w.names = unix.ParseDirent(w.buffer[:n], -1, w.names[:0])
		for _, base := range w.names {
			name := base
			if dir != "." {
				name = dir + "/" + base
			}
			if err := w.one(fd, base, name); err != nil {
				return err
			}
		}
	}
}

// passing leaves out what is no error of a scan.
func passing(err error, name string) error {
	for _, fine := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES, unix.EPERM} {
		if errors.Is(err, fine) {
			return nil
		}
	}
	if err != nil {
		return &fs.PathError{Op: "list", Path: name, Err: err}
	}
	return nil
}

// one compares one name.
func (w *scanWorker) one(fd int, base, name string) error {
	if w.skip(name) {
		return nil
	}
	var raw unix.Stat_t
	if err := unix.Fstatat(fd, base, &raw, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return passing(err, name)
	}
	is := stampFrom(&raw)
	if is.folder() {
		w.subs = append(w.subs, name)
	}
	if was, ok := w.known(name); ok && was == is {
		w.matches = append(w.matches, name)
		if raw.Nlink > 1 && !is.folder() {
			w.links = append(w.links, name)
		}
		return nil
	}
	w.differs = append(w.differs, namedStamp{name, is, uint64(raw.Nlink)}) //nolint:unconvert // other widths elsewhere
	return nil
}

// unlistable reports whether this user may not list a directory.
func unlistable(at string) bool {
	fd, err := unix.Open(at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return errors.Is(err, fs.ErrPermission)
}
