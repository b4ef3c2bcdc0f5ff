package process

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
)

// current reports whether no other process has used the stored copy since this
// one did.
func (s *snapshotStore) current() bool {
	is, _, err := stampOf(filepath.Join(s.at, listFile))
	if err != nil || is != s.list {
		return false
	}
	log, _, _ := stampOf(s.logFile())
	return log == s.log
}

// logFile returns the path of the log that belongs to the list.
func (s *snapshotStore) logFile() string {
	return filepath.Join(s.at, fmt.Sprintf("%s%d-%d", logPrefix, s.list.ino, s.list.mtime.Nano()))
}

// The prefixes of the entries in a list that hold the masks, and the name of the
// pack.
const (
	masksKey = "\x00masks:"
	packKey  = "\x00pack:"
)

// logLine is one line of a log: the state of a name since the list was stored.
type logLine struct {
	Name string `json:"n"`
	Mark *mark  `json:"m,omitempty"` // nil: the name has no copy any more
}

// binaryKey is the prefix of a name in a list that JSON cannot hold as it is.
const binaryKey = "\x00hex:"

func quoted(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return binaryKey + hex.EncodeToString([]byte(name))
}

func unquoted(key string) string {
	if raw, ok := strings.CutPrefix(key, binaryKey); ok {
		if name, err := hex.DecodeString(raw); err == nil {
			return string(name)
		}
	}
	return key
}

// openStore opens a stored copy. If its list cannot be read, everything is
// copied anew.
func openStore(at, root string) *snapshotStore {
	s := &snapshotStore{
		rootCopy: rootCopy{root: root, dir: filepath.Join(at, copyFolder), seen: map[string]entryState{}}, at: at, folderIndex: newFolderIndex(false),
		unchecked: true, released: true, logged: map[string]bool{}, users: map[string]*folderCopy{},
		diskSyncer: diskSyncer{(*os.File).Sync, flush},
	}
	list, _, err := stampOf(filepath.Join(at, listFile))
	var marks map[string]mark
	if err != nil || load(filepath.Join(at, listFile), &marks) != nil {
		return s
	}
	s.list = list
	for name, m := range marks {
		if masks, ok := strings.CutPrefix(name, masksKey); ok {
			s.stored = masks
			continue
		}
		if pack, ok := strings.CutPrefix(name, packKey); ok {
			s.pack.name = filepath.Base(pack)
			s.packed = s.pack.name
			continue
		}
		s.seen[unquoted(name)] = m.entryState()
	}
	s.loadLog()
	if is, _, err := stampOf(s.packPath()); err == nil && s.pack.name != "" {
		s.pack.size = is.size
	}
	s.bulk = sizeOf(s.seen)
	for name, t := range s.seen {
		if t.fresh {
			s.fresh[name] = true
		}
	}
	return s
}

// loadLog applies the log to the list, up to a line that was not fully written.
func (s *snapshotStore) loadLog() {
	raw, err := os.ReadFile(s.logFile())
	if err != nil {
		return
	}
	for line := range bytes.Lines(raw) {
		var one logLine
		if line[len(line)-1] != '\n' || json.Unmarshal(line, &one) != nil {
			return // s.log stays as if there were none: the next list is a whole one
		}
		s.lines++
		one.Name = unquoted(one.Name)
		if one.Mark == nil {
			delete(s.seen, one.Name)
			continue
		}
		s.seen[one.Name] = one.Mark.entryState()
	}
	s.log, _, _ = stampOf(s.logFile())
	s.behind = true // the process that wrote it may have been killed then
}

// fill updates the copy from the folder, unless another call relies on it. Its
// writes are durable once hold returns. Late leaves the copy as the last call
// left it.
func (t *folderCopy) fill(ctx context.Context, d *Driver, late bool, now time.Time) error {
	key := strings.Join(t.Masks, "\n")
	if t.relied() || late && len(t.seen) > 0 && t.stored == key {
		hidden, err := t.hiddenNow(ctx, d, now)
		if err == nil {
			t.masked, err = t.stamps(hidden)
		}
		if err == nil && !t.relied() { // what the last call left is not durable yet
			err = t.persist(key)
		}
		return err
	}
	since, err := snapshotClock()
	if err != nil {
		return err
	}
	l, err := t.look(ctx, d, now)
	if err != nil {
		return err
	}
	if t.masked, err = t.stamps(l.hidden); err != nil {
		return err
	}
	if t.unchecked {
		wrong, err := t.check(ctx)
		if err != nil {
			return err
		}
		for _, name := range wrong {
			l.names[name] = fileStamp{}
		}
	}
	if err := t.renew(ctx, l, since); err != nil {
		return err
	}
	t.unchecked, t.strays = false, nil
	return t.persist(key)
}

// hiddenNow returns the masked names, when nothing else is looked at.
func (t *folderCopy) hiddenNow(ctx context.Context, d *Driver, now time.Time) (map[string]bool, error) {
	if t.drain() && t.masks == strings.Join(t.Masks, "\n") {
		return t.hiddenAgain(ctx, d, now)
	}
	return d.hiddenIn(ctx, t.usageMarker, t.root, now)
}

// persistNow makes the copy and the list of its names durable.
func (s *snapshotStore) persistNow(masks string) error {
	err := s.persist(masks)
	if err == nil {
		err = s.syncLog()
	}
	return err
}

// persist makes the copy durable, and then writes the list of its names: a list on
// the disk names no content that is not there. The removal of a marker is
// durable before as well. Otherwise the marker could come back with a copy that
// has moved on, and its call would find changes of others.
//
// No file needs a sync of its own for this: one sync of the pack covers all
// small files, and one of the file system covers many large ones. What is
// written here is durable once hold or persistNow returns. A call may change
// nothing before.
func (s *snapshotStore) persist(masks string) error {
	err := s.writePack()
	if err == nil {
		err = s.repack()
	}
	if err != nil {
		return err
	}
	if err := s.barrier(); err != nil {
		return err
	}
	s.copied = nil
	//mutant:check
	if s.stored != masks || s.packed != s.pack.name || !s.current() || s.lines+len(s.logged) > max(1000, len(s.seen)/2) {
		return s.storeList(masks)
	}
	if len(s.logged) == 0 {
		return nil
	}
	return s.appendLog()
}

// barrier makes durable what a list relies on. A file system commits all of it
// at once.
func (s *snapshotStore) barrier() error {
	var all errgroup.Group
	all.Go(s.syncPack)
	all.Go(s.harden)
	if len(s.logged) > 0 {
		all.Go(s.syncRelease)
	}
	return all.Wait()
}

// syncRelease makes the removal of markers durable.
func (s *snapshotStore) syncRelease() error {
	if !s.released {
		return nil
	}
	err := with(s.at, s.sync)
	s.released = err != nil
	return err
}

// storeList stores the list of all names.
func (s *snapshotStore) storeList(masks string) error {
	if err := s.syncRelease(); err != nil {
		return err
	}
	marks := make(map[string]mark, len(s.seen)+2)
	for name, t := range s.seen {
		marks[quoted(name)] = t.mark()
	}
	marks[masksKey+masks] = mark{}
	if s.pack.name != "" {
		marks[packKey+s.pack.name] = mark{}
	}
	if err := s.store(filepath.Join(s.at, listFile), marks); err != nil {
		return err
	}
	for _, prefix := range []string{logPrefix, packPrefix} {
		old, err := filesIn(s.at, prefix)
		for _, name := range old { // they belong to an earlier list
			if filepath.Base(name) != s.pack.name {
				err = errors.Join(err, os.Remove(name))
			}
		}
		if err != nil {
			return err
		}
	}
	clear(s.logged)
	s.log, s.lines, s.stored, s.packed, s.behind = fileStamp{}, 0, masks, s.pack.name, false
	var err error
	s.list, _, err = stampOf(filepath.Join(s.at, listFile))
	return err
}

// appendLog writes the states of the names that were updated.
func (s *snapshotStore) appendLog() (err error) {
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(s.logged)) {
		line := logLine{Name: quoted(name)}
		if t, ok := s.seen[name]; ok {
			m := t.mark()
			line.Mark = &m
		}
		raw, err := json.Marshal(line)
		if err != nil {
			return err
		}
		all.Write(append(raw, '\n'))
	}
	f, err := os.OpenFile(s.logFile(), os.O_WRONLY|os.O_APPEND|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(all.Bytes())
	if err = errors.Join(err, f.Close()); err != nil {
		s.list = fileStamp{} // the next list is a whole one
		return err
	}
	s.lines += len(s.logged)
	clear(s.logged)
	s.behind = true
	s.log, _, err = stampOf(s.logFile())
	return err
}

// syncLog makes the log durable.
func (s *snapshotStore) syncLog() error {
	if !s.behind {
		return nil
	}
	err := with(s.logFile(), s.sync)
	if s.behind = err != nil; err != nil {
		s.list = fileStamp{} // the next list is a whole one
	}
	return err
}

// markerName returns the file of a marker. Calls that others may join have a
// file each.
func (c usageMarker) markerName() string {
	if c.Joins {
		return markerFile + "-" + c.Take
	}
	return markerFile
}

// markersIn returns the markers in the folder of a copy.
func markersIn(at string) (all []usageMarker, err error) {
	names, err := filesIn(at, markerFile)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		var c usageMarker
		if err := load(name, &c); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// filesIn returns the paths of the files in a folder whose names begin with a
// prefix.
func filesIn(dir, prefix string) (all []string, err error) {
	found, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range found {
		if strings.HasPrefix(e.Name(), prefix) {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all, nil
}

// hold writes the marker of a call that relies on the copy, durable with the
// copy. The log can be synced at the same time: the journal names the marker
// only after hold, so nothing looks for one with an older log.
func (t *folderCopy) hold() error {
	var log errgroup.Group
	log.Go(t.syncLog)
	err := t.store(filepath.Join(t.at, t.markerName()), t.usageMarker)
	err = errors.Join(err, log.Wait())
	if err = errors.Join(err, with(t.at, t.sync)); err == nil && !t.named {
		err = with(filepath.Dir(t.at), t.sync)
	}
	t.named, t.released = t.named || err == nil, t.released && err != nil
	return err
}

// release removes the marker. That is durable with the next persist or hold.
func (t *folderCopy) release() {
	_ = os.Remove(filepath.Join(t.at, t.markerName()))
	t.released = true
}
