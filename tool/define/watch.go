package define

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// Watch reloads whenever a file of the folder changes, and tells what each reload came to,
// until ctx ends; after that no tools are put in force. It begins with a reload, so that
// nothing is missed. A file that is still being written is a bad file until it is whole. A
// folder that is gone is a bad one until it is there again, and one that is a link, or that
// holds links to files, is that which they lead to by then.
func (l *Watcher) Watch(ctx context.Context, tell func(changed bool, err error)) error {
	for ctx.Err() == nil {
		// Before the files are read: what changes after it is seen as an event. A new one each
		// time, because what a path leads to may have become something else.
		s, err := look(l.dir)
		if err != nil {
			return fmt.Errorf("watching %s: %w", l.dir, err)
		}
		changed, err := l.reload(ctx)
		if changed || ctx.Err() == nil {
			tell(changed, err)
		}
		if err := errors.Join(s.wait(ctx), s.watcher.Close()); err != nil {
			return fmt.Errorf("watching %s: %w", l.dir, err)
		}
	}
	return context.Cause(ctx)
}

// dirSnapshot is what is watched of a folder until something in it changes.
type dirSnapshot struct {
	watcher *fsnotify.Watcher
	names   map[string]bool // of what the path leads through, and links to files
	inside  map[string]bool // folders in which every name counts
}

func look(dir string) (*dirSnapshot, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	s := &dirSnapshot{watcher: w, names: map[string]bool{}, inside: map[string]bool{}}
	folder, err := s.follow(dir)
	if err == nil && folder != "" {
		err = s.enter(folder)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return s, nil
}

// mostLinks is how many links a path leads through, as for an operating system.
const mostLinks = 40

// follow watches each folder and link of a path, from the root down. It returns
// the folder to which the path leads, or "" if it does not exist. It returns an
// error if it cannot watch for a missing folder.
func (s *dirSnapshot) follow(name string) (place string, err error) {
	whole, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	root := filepath.VolumeName(whole) + string(filepath.Separator)
	at, steps := root, split(whole[len(root)-1:])
	for links := 0; len(steps) > 0; {
		unseen := s.watcher.Add(at) // before it is looked into
		next := filepath.Join(at, steps[0])
		s.names[next], steps = true, steps[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return "", unseen
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		to, err := os.Readlink(next)
		if links++; err != nil || links > mostLinks {
			return "", unseen
		}
		if filepath.IsAbs(to) {
			at = root
		}
		steps = slices.Concat(split(to), steps)
	}
	return at, nil
}

func split(path string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(path), "/"), func(s string) bool { return s == "" || s == "." })
}

// enter watches a folder and those in it that Load reads.
func (s *dirSnapshot) enter(folder string) error {
	return filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // it went, which is an event; Load tells of it if it should be there
			return nil
		case name != folder && hidden(filepath.ToSlash(name)):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir():
			s.inside[name] = true
			if err := s.watcher.Add(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		case d.Type()&fs.ModeSymlink != 0:
			_, err := s.follow(name)
			return err
		}
		return nil
	})
}

// wait returns when something has changed, or ctx has ended.
func (s *dirSnapshot) wait(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-s.watcher.Events:
			if !ok {
				return fsnotify.ErrClosed
			}
			if s.counts(e.Name) {
				return nil
			}
		case _, ok := <-s.watcher.Errors:
			if !ok {
				return fsnotify.ErrClosed
			}
			return nil // such as too many events at once: all is read again anyway
		}
	}
}

// counts reports whether what has this name is read, or leads to what is.
func (s *dirSnapshot) counts(name string) bool {
	return s.names[name] || s.inside[name] || s.inside[filepath.Dir(name)] && !hidden(filepath.ToSlash(name))
}
