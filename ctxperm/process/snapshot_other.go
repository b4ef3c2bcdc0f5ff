//go:build portable || !linux

package process

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/remit-dev/remit/internal/host"
)

// Snapshots of folders with what every system supports. The build tag
// "portable" selects it on Linux too, for tests.

const (
	rereads = true  // a file that another program holds can be readable later
	watches = false // all names are looked at
)

// clockTick is longer than the ticks of the times of files. FAT has the
// longest: two seconds.
const clockTick = 3 * time.Second

// snapshotClock returns a time so early that a later change of a file that was
// last changed before it has another time.
func snapshotClock() (time.Time, error) { return host.Real().Now().Add(-clockTick), nil }

// flush is unused here; see hardenMany.
func flush(*os.File) error { return errors.ErrUnsupported }

// hardenMany makes many copied files durable: first all of them leave this
// machine's memory, and then one call makes the disk write them.
func (s *snapshotStore) hardenMany() error {
	contents, folders := s.lastCopied()
	return errors.Join(syncAll(contents, true, syncPlain), syncAll(folders, false, syncPlain), with(filepath.Join(s.at, copyFolder), s.sync))
}

// copiedLink returns the target of the copy of a link, which is a file: a user
// of Windows may not make links.
func copiedLink(at string) (string, error) {
	target, err := os.ReadFile(at)
	return string(target), err
}

// make copies one name. It copies a file that this user may not read without
// its content, and reports it as shut. Attributes and bits of a copy do not
// matter: the list has those that are kept.
func (r *copyRefresh) make(from, to string, is rawStat, _ string) (shut bool, err error) {
	switch stampFrom(&is).mode & typeMask {
	case typeFolder:
		if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
	case typeLink:
		target, err := os.Readlink(from)
		if err != nil {
			return false, err
		}
		return false, os.WriteFile(to, []byte(target), 0o600)
	case typeFile:
		return copyFile(from, to)
	}
	return false, nil
}

func copyFile(from, to string) (shut bool, err error) {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	in, err := os.OpenFile(from, os.O_RDONLY|noFollow|noWait, 0)
	if errors.Is(err, fs.ErrPermission) || heldByOther(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = in.Close() }()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return false, errors.Join(fs.ErrNotExist, err) // replaced just now; the next look finds it
	}
	if _, err = io.Copy(out, in); heldByOther(err) {
		return true, out.Truncate(0)
	}
	return false, err
}

// attributes returns no attributes: none are kept here.
func attributes(string) (map[string][]byte, error) { return map[string][]byte{}, nil }

// chmod does nothing: the bits of a copy do not matter.
func chmod(string, uint32) error { return nil }

// lacking returns no bits: a copy can always be read.
func lacking(uint32) uint32 { return 0 }

// unlock does nothing: a copy can always be read.
func unlock(string, uint32) error { return nil }

// scanWorkers is unused here: one goroutine reads all directories.
var scanWorkers = 1

// namedStamp is one name that a scan found different from what is known.
type namedStamp struct {
	name  string
	is    fileStamp
	links uint64
}

// folderScan compares all names below a folder with those that are known.
type folderScan struct {
	dir   string
	skip  func(name string) bool
	known func(name string) (fileStamp, bool) // what is known of a name

	differ  []namedStamp
	matched []string
	linked  []string // matched files that have several names
}

// scan reads a folder from some directories on. The directories themselves are
// compared too.
func (s *folderScan) scan(ctx context.Context, from ...string) error {
	var queue []string
	for _, name := range from {
		if err := s.one(name, &queue); err != nil {
			return err
		}
	}
	for len(queue) > 0 {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		dir := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		names, err := s.list(dir)
		if err != nil {
			return err
		}
		for _, base := range names {
			name := base
			if dir != "." {
				name = dir + "/" + base
			}
			if err := s.one(name, &queue); err != nil {
				return err
			}
		}
	}
	return nil
}

// list returns the entries of one directory. It lists nothing of one that is
// gone by now, or that this user may not read.
func (s *folderScan) list(name string) ([]string, error) {
	at := filepath.Join(s.dir, name)
	if is, _, err := stampOf(at); err != nil || !is.folder() {
		return nil, passing(err, name)
	}
	f, err := os.OpenFile(at, os.O_RDONLY|noFollow|noWait, 0)
	if err != nil {
		return nil, passing(err, name)
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(passing(err, name), f.Close())
}

// passing leaves out what is no error of a scan.
func passing(err error, name string) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) || notFolder(err) {
		return nil
	}
	return &fs.PathError{Op: "list", Path: name, Err: err}
}

// one compares one name.
func (s *folderScan) one(name string, queue *[]string) error {
	if s.skip(name) {
		return nil
	}
	is, raw, err := stampOf(filepath.Join(s.dir, name))
	if err != nil {
		return passing(err, name)
	}
	if is.folder() {
		*queue = append(*queue, name)
	}
	links := uint64(raw.Nlink) //nolint:unconvert // other widths elsewhere
	if was, ok := s.known(name); ok && was == is {
		s.matched = append(s.matched, name)
		if links > 1 && !is.folder() {
			s.linked = append(s.linked, name)
		}
		return nil
	}
	s.differ = append(s.differ, namedStamp{name, is, links})
	return nil
}

// unlistable reports whether this user may not list a directory.
func unlistable(at string) bool {
	f, err := os.OpenFile(at, os.O_RDONLY|noFollow, 0)
	if err == nil {
		_, err = f.Readdirnames(1)
		_ = f.Close()
	}
	return errors.Is(err, fs.ErrPermission)
}
