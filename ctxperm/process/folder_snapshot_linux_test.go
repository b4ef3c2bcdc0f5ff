//go:build !portable

package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// snapshotEnv is a Snapshotter and a root for it.
type snapshotEnv struct {
	*Snapshotter

	t   *testing.T
	dir string
}

func newSnapshotEnv(t *testing.T) *snapshotEnv {
	k, err := NewSnapshotter(SnapshotConfig{Dir: filepath.Join(t.TempDir(), "kept")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	return &snapshotEnv{k, t, t.TempDir()}
}

func (s *snapshotEnv) put(name, content string) {
	s.t.Helper()
	at := filepath.Join(s.dir, name)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(at), 0o755))
	require.NoError(s.t, os.WriteFile(at, []byte(content), 0o644))
}

// take takes a snapshot of the root for a call.
func (s *snapshotEnv) take(call string) *folderCopy {
	s.t.Helper()
	c := usageMarker{Call: call, Take: "take-" + call, Name: "workspace", Dir: s.dir, Folder: ".", Place: keyOf(s.dir) + "-" + keyOf(".")}
	one := &folderCopy{usageMarker: c, turn: make(chan struct{}, 1)}
	var err error
	one.root, err = host.OpenRoot(host.Real(), s.dir)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = one.root.Close() })
	one.snapshotStore, err = s.storeFor(c)
	require.NoError(s.t, err)
	require.NoError(s.t, one.fill(s.t.Context(), &s.driver, false, time.Now()))
	require.NoError(s.t, one.hold())
	return one
}

// differ returns the names that differ, with their previous state.
func (s *snapshotEnv) differ(one *folderCopy) map[string]string {
	s.t.Helper()
	before, lost, err := one.differences(s.t.Context(), &s.driver, time.Now())
	require.NoError(s.t, err)
	require.NoError(s.t, lost)
	all := map[string]string{}
	for _, b := range before {
		all[b.Path] = b.Type
		if b.Open != nil {
			r, err := b.Open()
			require.NoError(s.t, err)
			raw, err := io.ReadAll(r)
			require.NoError(s.t, errors.Join(err, r.Close()))
			all[b.Path] = string(raw)
		}
	}
	return all
}

// copies returns the inodes of the files of the copy and of its list, and the
// places in the pack.
func (s *snapshotEnv) copies() map[string]uint64 {
	s.t.Helper()
	all := map[string]uint64{}
	require.NoError(s.t, filepath.Walk(s.cfg.Dir, func(at string, is os.FileInfo, err error) error {
		if err == nil && strings.HasPrefix(is.Name(), packPrefix) {
			some := openStore(filepath.Dir(at), s.dir)
			for name, e := range some.seen {
				if e.packed() {
					all[name] = uint64(e.at)
				}
			}
			return nil
		}
		if err == nil && is.Mode().IsRegular() && is.Name() != markerFile && !strings.HasPrefix(is.Name(), logPrefix) {
			sys, ok := is.Sys().(*syscall.Stat_t)
			require.True(s.t, ok)
			all[at] = sys.Ino
		}
		return err
	}))
	return all
}

// TestSnapshotCopiesOnlyChanges checks that unchanged files are neither copied nor listed
// again, in the same process and in the next one. Changed files are.
func TestSnapshotCopiesOnlyChanges(t *testing.T) {
	s := newSnapshotEnv(t)
	for i := range 100 {
		s.put(fmt.Sprintf("%d/%d", i%7, i), fmt.Sprint(i))
	}
	s.put("twin", "two names")
	require.NoError(t, os.Symlink("twin", filepath.Join(s.dir, "link")))
	s.put("large", strings.Repeat("x", maxPacked+1))
	s.take("1").release()
	first := s.copies()
	require.Len(t, first, 1+100+2+8+1, "list, small files and links, folders, and the large file")
	s.take("2").release()
	require.Equal(t, first, s.copies())
	clear(s.known) // as another process
	s.take("3").release()
	again := s.copies()
	list := filepath.Join(s.cfg.Dir, keyOf(s.dir)+"-"+keyOf("."), listFile)
	delete(first, list)
	delete(again, list)
	require.Equal(t, first, again)

	s.put("3/3", "other")
	one := s.take("4")
	require.Empty(t, s.differ(one))
	require.NotEqual(t, first, s.copies())
	s.put("3/3", "third")
	require.NoError(t, os.Remove(filepath.Join(s.dir, "link")))
	require.Equal(t, "other", s.differ(one)["3/3"])
	require.Equal(t, "link", s.differ(one)["link"])
	one.release()

	mine := s.Snapshotter
	other, err := NewSnapshotter(mine.cfg)
	require.NoError(t, err)
	s.Snapshotter = other // another process, which copies the changed files
	s.take("5").release()
	last := s.copies()
	s.Snapshotter = mine
	s.take("6").release()
	delete(last, list)
	again = s.copies()
	delete(again, list)
	require.Equal(t, last, again)
}

// TestSnapshotUnreadable checks files that this user may not read, which have no
// copy. If one changed, its previous content is unknown. A file that is
// unreadable afterwards is reported as such.
func TestSnapshotUnreadable(t *testing.T) {
	defer func(n int) { scanWorkers = n }(scanWorkers)
	scanWorkers = 1 // the thread of this user
	s := newSnapshotEnv(t)
	s.dir = folder(t, "root")
	base := folder(t, "kept")
	s.cfg.Dir = base
	write(t, filepath.Join(s.dir, "shut"), "x")
	write(t, filepath.Join(s.dir, "dir/f"), "x")
	asUser(t, func() {
		require.NoError(t, os.Chmod(filepath.Join(s.dir, "shut"), 0))
		one := s.take("1")
		require.Empty(t, s.differ(one))
		require.NoError(t, os.Chmod(filepath.Join(s.dir, "dir"), 0))
		before, lost, err := one.differences(t.Context(), &s.driver, time.Now())
		require.NoError(t, errors.Join(err, lost))
		traces := files.NewDetectedChanges(host.Real(), journal.Memory())
		require.ErrorContains(t, fileInternals.Detect(t.Context(), traces, "workspace", one.root, before), "dir/f: what became of it cannot be told")
		changes, _ := traces.Changes()
		require.Len(t, changes, 2)
		for _, c := range changes {
			require.False(t, c.Post.Known(), c.Resource)
		}
		require.NoError(t, os.Chmod(filepath.Join(s.dir, "dir"), 0o755))
		require.NoError(t, os.Remove(filepath.Join(s.dir, "shut")))
		_, lost, err = one.differences(t.Context(), &s.driver, time.Now())
		require.NoError(t, err)
		require.ErrorContains(t, lost, "shut: it was changed, and what it held could not be read before")
		one.release()
	})
}

// TestSnapshotWithinClockTick checks that a file touched while it was copied is
// compared by content. It may have been touched again in the same clock tick.
func TestSnapshotWithinClockTick(t *testing.T) {
	s := newSnapshotEnv(t)
	s.put("f", "a")
	one := s.take("1")
	s.put("f", "b")
	for _, fresh := range []bool{false, true} {
		seen := one.seen["f"]
		var err error
		seen.root, _, err = stampOf(filepath.Join(s.dir, "f")) // as if it had the same time
		require.NoError(t, err)
		seen.fresh = fresh
		one.seen["f"] = seen
		_, found := s.differ(one)["f"]
		require.Equal(t, fresh, found)
	}
}

// TestSnapshotOfInterruptedCall checks that later calls do not touch the copy of an interrupted
// call, and that its changes are distinguished from theirs.
func TestSnapshotOfInterruptedCall(t *testing.T) {
	s := newSnapshotEnv(t)
	s.put("f", "first")
	died := s.take("died")
	s.put("f", "second")
	clear(s.known)
	next := s.take("next")
	require.Empty(t, s.differ(next))
	s.put("f", "third")
	require.Equal(t, "second", s.differ(next)["f"])
	next.release()
	left := *died
	left.snapshotStore = openStore(died.at+"."+died.Take, s.dir)
	require.Equal(t, "first", s.differ(&left)["f"])
}

// TestSnapshotDamagedList checks that a damaged list is ignored, and everything is copied
// anew.
func TestSnapshotDamagedList(t *testing.T) {
	s := newSnapshotEnv(t)
	s.put("f", "first")
	one := s.take("1")
	one.release()
	require.NoError(t, os.WriteFile(filepath.Join(one.at, listFile), []byte("{"), 0o600))
	s.put("f", "other")
	one = s.take("2")
	s.put("f", "third")
	require.Equal(t, "other", s.differ(one)["f"])
}

// TestSnapshotClears checks that the least recently used of many copies are
// removed. A copy that a call relies on stays, and so do copies of a root that
// another call holds.
func TestSnapshotClears(t *testing.T) {
	s := newSnapshotEnv(t)
	old := time.Unix(1e9, 0)
	place := func(name string, claimed bool) string {
		at := filepath.Join(s.cfg.Dir, name)
		require.NoError(t, os.MkdirAll(at, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(at, listFile), []byte("{}"), 0o600))
		if old = old.Add(time.Second); claimed {
			require.NoError(t, os.WriteFile(filepath.Join(at, markerFile), []byte("{}"), 0o600))
		}
		require.NoError(t, os.Chtimes(at, old, old))
		return at
	}
	claimed, locked, plain := place("a-1", true), place("b-1", false), place("c-1", false)
	gate, err := os.Create(filepath.Join(s.cfg.Dir, "b.lock"))
	require.NoError(t, err)
	defer func() { _ = gate.Close() }()
	require.NoError(t, lock(gate, true))
	aside := place("d-1.take", true)
	for i := range maxStores {
		place(fmt.Sprintf("e-%d", i), false)
	}
	s.take("1")
	require.DirExists(t, claimed)
	require.DirExists(t, locked)
	require.NoDirExists(t, plain)
	require.NoDirExists(t, aside)
	all, err := filepath.Glob(filepath.Join(s.cfg.Dir, "*", listFile))
	require.NoError(t, err)
	require.Len(t, all, maxStores)
}

// TestSnapshotIsSynced checks that the copies, their names, the list and the marker
// are durable before a call begins.
func TestSnapshotIsSynced(t *testing.T) {
	s := newSnapshotEnv(t)
	s.put("a/f", "1")
	s.put("a/b/g", "1")
	place := keyOf(s.dir) + "-" + keyOf(".")
	var synced, flushed []string
	var mu sync.Mutex
	note := func(all *[]string, real func(*os.File) error) func(*os.File) error {
		return func(f *os.File) error {
			name, err := filepath.Rel(s.cfg.Dir, f.Name())
			require.NoError(t, err)
			if strings.Contains(name, "/draft-") {
				raw, err := os.ReadFile(f.Name())
				require.NoError(t, err)
				name = listFile
				if strings.Contains(string(raw), `"take"`) {
					name = markerFile
				}
			}
			name = strings.TrimPrefix(name, place+"/")
			for _, prefix := range []string{logPrefix, packPrefix} {
				if strings.HasPrefix(name, prefix) {
					name = prefix
				}
			}
			mu.Lock()
			*all = append(*all, name)
			mu.Unlock()
			return real(f)
		}
	}
	s.sync, s.flush = note(&synced, s.sync), note(&flushed, s.flush)
	large := strings.Repeat("x", maxPacked+1)
	s.put("a/large", large)
	s.take("1").release()
	require.Len(t, synced, 9)
	require.ElementsMatch(t, []string{packPrefix, "copy/a/large", "copy", "copy/a", place}, synced[:5], "contents first, at once")
	require.Equal(t, []string{"list", "claim", place, "."}, synced[5:])
	require.Empty(t, flushed)

	synced = nil
	s.take("2").release()
	require.Equal(t, []string{"claim", place}, synced)

	synced = nil
	s.put("a/f", "2")
	one := s.take("2 again")
	require.ElementsMatch(t, []string{packPrefix, place}, synced[:2])
	require.ElementsMatch(t, []string{logPrefix, "claim"}, synced[2:4])
	require.Equal(t, []string{place}, synced[4:])

	synced = nil
	s.put("a/f", "3")
	s.differ(one)
	one.conclude()
	require.Empty(t, synced, "what the copy takes over is durable before the next call")

	for i := range few + 1 {
		s.put(fmt.Sprint(i), large)
	}
	s.take("3").release()
	require.Equal(t, []string{"copy"}, flushed)
	require.ElementsMatch(t, []string{packPrefix, place}, synced[:2])
	require.ElementsMatch(t, []string{logPrefix, "claim"}, synced[2:4])
	require.Equal(t, []string{place}, synced[4:])

	synced = nil
	clear(s.known) // another process, which may have been killed before it synced the log
	s.take("4").release()
	require.Contains(t, synced, logPrefix)

	broken := errors.New("broken disk")
	for at := range 5 {
		n := 0
		s.sync = func(*os.File) error {
			mu.Lock()
			defer mu.Unlock()
			if n++; n == at+1 {
				return broken
			}
			return nil
		}
		s.put("a/f", fmt.Sprint("again", at))
		c := usageMarker{Call: "4", Take: "4", Name: "workspace", Dir: s.dir, Folder: ".", Place: place}
		one := &folderCopy{usageMarker: c}
		var err error
		one.snapshotStore, err = s.storeFor(c)
		require.NoError(t, err)
		one.root, err = host.OpenRoot(host.Real(), s.dir)
		require.NoError(t, err)
		defer func() { _ = one.root.Close() }()
		if err = one.fill(t.Context(), &s.driver, false, time.Now()); err == nil {
			err = one.hold()
		}
		require.ErrorIs(t, err, broken)
		one.release()
	}
}

// TestMark checks that the stored state of a name round-trips.
func TestMark(t *testing.T) {
	s := newSnapshotEnv(t)
	s.put("a/f", "x")
	require.NoError(t, os.Symlink("f", filepath.Join(s.dir, "a/l")))
	one := s.take("1")
	require.NotEmpty(t, one.seen)
	for name, seen := range one.seen {
		for _, seen.shut = range []bool{false, true} {
			for _, seen.fresh = range []bool{false, true} {
				require.Equal(t, seen, seen.mark().entryState(), name)
			}
		}
	}
}

// TestRecordedChange checks that a call has recorded a change only from the version in
// the snapshot on. What it did to the file before the snapshot does not count.
func TestRecordedChange(t *testing.T) {
	one := func(pre, post effect.Token) effect.Change {
		return effect.Change{Resource: "file://workspace/f", Pre: pre, Post: post}
	}
	all := []effect.Change{one("a", "b"), {Resource: "file://workspace/other", Pre: "b"}}
	require.True(t, isRecorded(all, one("a", "c")))
	require.False(t, isRecorded(all, one("b", "c")))
	require.False(t, isRecorded(nil, one("a", "b")))
}

// TestTraces checks that a new file in a folder is a change, and the folder is
// none.
func TestTraces(t *testing.T) {
	s := newSnapshotEnv(t)
	s.put("dir/f", "x")
	one := s.take("1")
	s.put("dir/new", "x")
	before, lost, err := one.differences(t.Context(), &s.driver, time.Now())
	require.NoError(t, errors.Join(err, lost))
	require.Len(t, before, 2)
	traces := files.NewDetectedChanges(host.Real(), journal.Memory())
	require.NoError(t, fileInternals.Detect(t.Context(), traces, "workspace", one.root, before))
	changes, _ := traces.Changes()
	require.Len(t, changes, 1)
	require.Equal(t, "file://workspace/dir/new", changes[0].Resource)
}
