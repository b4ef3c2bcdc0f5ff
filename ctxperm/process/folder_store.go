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

// masksKey is the prefix of the entry in a list that holds the masks.
const masksKey = "\x00masks:"

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
		unchecked: true, logged: map[string]bool{}, users: map[string]*folderCopy{},
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
		s.seen[unquoted(name)] = m.entryState()
	}
	s.loadLog()
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
	t.unchecked = false
	return t.persist(key)
}

// hiddenNow returns the masked names, when nothing else is looked at.
func (t *folderCopy) hiddenNow(ctx context.Context, d *Driver, now time.Time) (map[string]bool, error) {
	if t.drain() && t.folderIndex.masks == strings.Join(t.Masks, "\n") {
		return t.hiddenAgain(ctx, d, now)
	}
	return d.hiddenIn(ctx, t.usageMarker, t.root, now)
}

// persist makes the copy and the list of its names durable.
func (s *snapshotStore) persist(masks string) error {
	if err := s.harden(); err != nil {
		return err
	}
	s.copied = nil
	//mutant:check
	if s.stored != masks || !s.current() || s.lines+len(s.logged) > max(1000, len(s.seen)/2) {
		return s.storeList(masks)
	}
	if len(s.logged) == 0 {
		return nil
	}
	return s.appendLog()
}

// storeList stores the list of all names.
func (s *snapshotStore) storeList(masks string) error {
	marks := make(map[string]mark, len(s.seen)+1)
	for name, t := range s.seen {
		marks[quoted(name)] = t.mark()
	}
	marks[masksKey+masks] = mark{}
	if err := s.store(filepath.Join(s.at, listFile), marks); err != nil {
		return err
	}
	old, err := filesIn(s.at, logPrefix)
	for _, name := range old { // they belong to an earlier list
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		return err
	}
	clear(s.logged)
	s.log, s.lines, s.stored = fileStamp{}, 0, masks
	s.list, _, err = stampOf(filepath.Join(s.at, listFile))
	return err
}

// appendLog stores the states of the names that were updated.
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
	if err == nil {
		err = s.sync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		s.list = fileStamp{} // the next list is a whole one
		return err
	}
	s.lines += len(s.logged)
	clear(s.logged)
	s.log, _, err = stampOf(s.logFile())
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
// copy.
func (t *folderCopy) hold() error {
	err := t.store(filepath.Join(t.at, t.markerName()), t.usageMarker)
	for _, dir := range []string{t.at, filepath.Dir(t.at)} {
		err = errors.Join(err, with(dir, t.sync))
	}
	return err
}

// release removes the marker.
func (t *folderCopy) release() { _ = os.Remove(filepath.Join(t.at, t.markerName())) }
