package process

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
)

// store replaces a whole file. Its name becomes durable with its folder.
func (s *snapshotStore) store(name string, what any) error {
	raw, err := json.Marshal(what)
	if err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(name), "draft-")
	if err != nil {
		return err
	}
	_, err = draft.Write(raw)
	if err == nil {
		err = s.sync(draft)
	}
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}

// few is the maximum number of files that are synced one by one. Above it, the
// whole file system is synced.
const few = 32

// harden makes the last copied files durable: first their content, then their
// names.
func (s *snapshotStore) harden() error {
	if len(s.copied) > few {
		return s.hardenMany()
	}
	contents, folders := s.lastCopied()
	return errors.Join(syncAll(contents, true, s.sync), syncAll(folders, false, s.sync))
}

// lastCopied returns the files that were copied last, and the folders above
// them.
func (s *snapshotStore) lastCopied() (contents, folders []string) {
	all := map[string]bool{}
	for _, name := range s.copied {
		at := filepath.Join(s.dir, name)
		for dir := filepath.Dir(at); within(s.dir, dir); dir = filepath.Dir(dir) {
			all[dir] = true
		}
		switch is, _, err := stampOf(at); {
		case err != nil:
		case is.folder():
			all[at] = true
		case is.mode&typeMask == typeFile:
			contents = append(contents, at)
		}
	}
	slices.Sort(contents)
	return slices.Compact(contents), slices.Sorted(maps.Keys(all))
}

// syncAll syncs some files or folders at once: a file system commits them
// together.
func syncAll(names []string, mayMiss bool, sync func(*os.File) error) error {
	var all errgroup.Group
	all.SetLimit(8)
	for _, at := range names {
		all.Go(func() error {
			err := with(at, sync)
			if mayMiss && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) { // an unreadable copy has no content
				return nil
			}
			return err
		})
	}
	return all.Wait()
}

func load(name string, into any) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// mark is the stored form of an entryState.
type mark [2*stampSize + 3]int64

// stampSize is the number of values in a stamp.
const stampSize = 10

func (t entryState) mark() (m mark) {
	for i, s := range []fileStamp{t.root, t.copy} {
		copy(m[stampSize*i:], []int64{int64(s.ino), int64(s.dev), int64(s.mode), int64(s.uid), int64(s.gid), s.size, s.mtime.Sec, s.mtime.Nsec, s.ctime.Sec, s.ctime.Nsec})
	}
	if t.shut {
		m[2*stampSize] |= 1
	}
	if t.fresh {
		m[2*stampSize] |= 2
	}
	m[2*stampSize+1], m[2*stampSize+2] = t.at, int64(t.sum)
	return m
}

func (m mark) entryState() entryState {
	var both [2]fileStamp
	for i := range both {
		v := m[stampSize*i:]
		both[i] = fileStamp{
			ino: uint64(v[0]), dev: uint64(v[1]), mode: uint32(v[2]), uid: uint32(v[3]), gid: uint32(v[4]), size: v[5],
			mtime: timespec{Sec: v[6], Nsec: v[7]}, ctime: timespec{Sec: v[8], Nsec: v[9]},
		}
	}
	return entryState{
		root: both[0], copy: both[1], shut: m[2*stampSize]&1 != 0, fresh: m[2*stampSize]&2 != 0,
		at: m[2*stampSize+1], sum: uint32(m[2*stampSize+2]), //nolint:gosec // as mark stored it
	}
}
