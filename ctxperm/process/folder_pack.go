package process

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"
)

// The content of a small file, and the target of a link, are in one file for
// all of them: the pack. So a copy needs no file for each of theirs, and one
// sync makes all of them durable. Nothing in the pack changes; new content is
// appended. Large files, and what has attributes, have files in the tree of the
// copy. A folder without attributes needs neither.

const (
	packPrefix = "pack-"
	maxPacked  = 64 << 10 // bytes of a file; above it, the file system may share content
	maxTail    = 4 << 20  // bytes that are not written yet
	minRepack  = 64 << 20 // bytes of a pack
)

// packOf is the pack of one copy.
type packOf struct {
	name     string // its file, in the folder of the copy; empty: none yet
	size     int64  // what is written
	tail     []byte // what comes next
	unsynced bool   // not all that is written is durable
	enough   int64  // a larger one is looked at for unused content
}

// packed reports whether the pack has what there is to know of a name.
func (t entryState) packed() bool { return t.at > 0 }

// packName is a name as it is now, as an entry of a pack.
type packName struct {
	t       entryState
	links   uint64
	content []byte // nil: none, or the known one
	same    bool   // the known entry holds
}

// packNames reads some names, several at once. The result has those that can be
// in a pack.
func (s *snapshotStore) packNames(l lookedAt, names []string) map[string]packName {
	all := make(map[string]packName, len(names))
	var mu sync.Mutex // never held across a wait
	each := func(some []string) {
		b := make([]byte, maxPacked+1)
		for _, name := range some {
			if l.ours(name) {
				continue
			}
			if p, ok := s.packName(name, l.names[name], b); ok {
				mu.Lock()
				all[name] = p
				mu.Unlock()
			}
		}
	}
	workers := scanWorkers
	if len(names) < 4*workers {
		workers = 1
	}
	var others sync.WaitGroup
	for i := 1; i < workers; i++ {
		others.Go(func() { each(names[len(names)*i/workers : len(names)*(i+1)/workers]) })
	}
	each(names[:len(names)/workers])
	others.Wait()
	return all
}

// unchanged completes the entry of a name with what the pack has, if the name
// is as it was.
func (s *snapshotStore) unchanged(name string, t *entryState) bool {
	old, known := s.seen[name]
	_, touched := s.dirty[name] // an event tells more than times
	if !known || !old.packed() || old.shut || old.fresh || old.root != t.root || touched && !t.root.folder() {
		return false
	}
	*t = old
	return true
}

// addToPack appends the content of an entry to the pack.
func (s *snapshotStore) addToPack(p packName) (entryState, error) {
	t := p.t
	if p.same || t.root.folder() {
		return t, nil
	}
	t.at, t.sum = s.pack.size+int64(len(s.pack.tail))+1, crc32.ChecksumIEEE(p.content)
	t.copy = fileStamp{size: int64(len(p.content))}
	s.pack.tail = append(s.pack.tail, p.content...)
	if len(s.pack.tail) < maxTail {
		return t, nil
	}
	return t, s.writePack()
}

// writePack writes what was appended.
func (s *snapshotStore) writePack() (err error) {
	if len(s.pack.tail) == 0 {
		return nil
	}
	var f *os.File
	if s.pack.name == "" {
		if f, err = os.CreateTemp(s.at, packPrefix); err == nil {
			s.pack.name, s.pack.size = filepath.Base(f.Name()), 0
		}
	} else {
		f, err = os.OpenFile(s.packPath(), os.O_WRONLY|noFollow, 0)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt(s.pack.tail, s.pack.size)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	s.pack.size += int64(len(s.pack.tail))
	s.pack.tail, s.pack.unsynced = s.pack.tail[:0], true
	return nil
}

// syncPack makes what was appended durable.
func (s *snapshotStore) syncPack() error {
	if err := s.writePack(); err != nil || !s.pack.unsynced {
		return err
	}
	err := with(s.packPath(), s.sync)
	s.pack.unsynced = err != nil
	return err
}

func (s *snapshotStore) packPath() string { return filepath.Join(s.at, s.pack.name) }

// content returns what the pack has of a name.
func (s *snapshotStore) content(t entryState) ([]byte, error) {
	b, from := make([]byte, t.copy.size), t.at-1
	if from >= s.pack.size {
		from -= s.pack.size
		copy(b, s.pack.tail[min(from, int64(len(s.pack.tail))):])
	} else {
		err := with(s.packPath(), func(f *os.File) error {
			_, err := f.ReadAt(b, from)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if crc32.ChecksumIEEE(b) != t.sum {
		return nil, fmt.Errorf("%s is damaged at %d", s.packPath(), t.at-1)
	}
	return b, nil
}

// open opens the content that a name had.
func (s *snapshotStore) open(name string) (io.ReadCloser, error) {
	t := s.seen[name]
	if !t.packed() {
		return s.rootCopy.open(name)
	}
	b, err := s.content(t)
	return io.NopCloser(bytes.NewReader(b)), err
}

// repack writes the used content to another pack, if the pack has more that is
// not used. The whole list must be stored then.
func (s *snapshotStore) repack() error {
	if s.pack.size <= max(s.pack.enough, minRepack) {
		return nil
	}
	var used int64
	for _, t := range s.seen {
		if t.packed() {
			used += t.copy.size
		}
	}
	if s.pack.enough = 2 * used; s.pack.size <= max(s.pack.enough, minRepack) {
		return nil
	}
	moved := make(map[string]entryState, len(s.seen))
	other := &snapshotStore{at: s.at, diskSyncer: s.diskSyncer}
	for name, t := range s.seen {
		if !t.packed() || t.root.folder() {
			continue
		}
		b, err := s.content(t)
		if err == nil {
			moved[name], err = other.addToPack(packName{t: t, content: b})
		}
		if err != nil {
			s.pack.enough = 2 * s.pack.size // the last one stays
			return os.RemoveAll(other.packPath())
		}
	}
	if err := other.syncPack(); err != nil {
		return err
	}
	maps.Copy(s.seen, moved)
	s.pack = other.pack
	return nil
}
