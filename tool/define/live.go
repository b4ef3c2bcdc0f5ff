package define

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"

	"github.com/remit-dev/remit/tool"
)

// Live is a folder of definitions that is read again when it changes. A call sees the
// tools that there were when it began, and a bad file leaves those that are in force.
type Live struct {
	dir             string
	implementations map[string]Implementation
	use             func([]tool.Tool) error
	opts            []Option

	mu      sync.Mutex // never held across a wait
	began   uint64     // number of the newest reload
	current uint64     // number of the reload whose tools are in force
	digests string     // of those
}

// Open loads a folder and hands its tools to use, here and after each change; use puts them
// in force, as agent.Runtime.SetTools does, and is not run twice at once.
func Open(dir string, implementations map[string]Implementation, use func([]tool.Tool) error, opts ...Option) (*Live, error) {
	l := &Live{dir: dir, implementations: implementations, use: use, opts: opts}
	if _, err := l.Reload(); err != nil {
		return nil, err
	}
	return l, nil
}

// Reload reads the folder again, and reports whether other tools are in force than before.
// With an error the old ones stay. Of reloads at the same time, one that began earlier never
// replaces what a later one read.
func (l *Live) Reload() (changed bool, err error) {
	number := l.begin()
	tools, err := Load(os.DirFS(l.dir), l.implementations, l.opts...)
	if err != nil {
		return false, l.kept(err)
	}
	var digests strings.Builder
	for _, t := range tools {
		_, _ = fmt.Fprintln(&digests, t.Digest(), t.Spec().Provenance.Digest)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if number < l.current || l.current > 0 && digests.String() == l.digests {
		return false, nil
	}
	if err := l.use(slices.Clip(tools)); err != nil {
		return false, l.kept(err)
	}
	l.current, l.digests = number, digests.String()
	return true, nil
}

func (l *Live) kept(err error) error {
	return fmt.Errorf("the definitions of %s were not taken, those from before stay:\n%w", l.dir, err)
}

func (l *Live) begin() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began++
	return l.began
}

// Watch reloads whenever a file of the folder changes, and tells what each reload came to,
// until ctx ends. It begins with a reload, so that nothing is missed. A file that is still
// being written is a bad file until it is whole.
func (l *Live) Watch(ctx context.Context, tell func(changed bool, err error)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", l.dir, err)
	}
	defer func() { _ = w.Close() }()
	for {
		// Before the files are read: what changes after it is seen as an event.
		if err := l.attend(w); err != nil {
			return fmt.Errorf("watching %s: %w", l.dir, err)
		}
		tell(l.Reload())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.Events:
		case <-w.Errors: // such as too many events at once: all is read again anyway
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		drain(w)
	}
}

// attend watches the folder and those in it that are there by now.
func (l *Live) attend(w *fsnotify.Watcher) error {
	return filepath.WalkDir(l.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if name == l.dir {
				return err
			}
			return nil // it went; Load tells of it if it should be there
		}
		if !d.IsDir() {
			return nil
		}
		if name != l.dir && hidden(filepath.ToSlash(name)) {
			return fs.SkipDir
		}
		if err := w.Add(name); err != nil && name == l.dir {
			return err
		}
		return nil
	})
}

// drain takes what came meanwhile: one reload sees all of it.
func drain(w *fsnotify.Watcher) {
	for {
		select {
		case <-w.Events:
		case <-w.Errors:
		default:
			return
		}
	}
}
