//go:build portable || !linux

package process

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// portableEnv is a Snapshotter and a root for it.
type portableEnv struct {
	*Snapshotter

	t   *testing.T
	dir string
}

func newPortableEnv(t *testing.T) *portableEnv {
	k, err := NewSnapshotter(SnapshotConfig{Dir: filepath.Join(t.TempDir(), "kept"), Watch: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return &portableEnv{k, t, dir}
}

func (s *portableEnv) at(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s *portableEnv) put(name, content string) {
	s.t.Helper()
	require.NoError(s.t, os.MkdirAll(filepath.Dir(s.at(name)), 0o755))
	require.NoError(s.t, os.WriteFile(s.at(name), []byte(content), 0o644))
}

// take takes a snapshot of the root for a call that others may join.
func (s *portableEnv) take(call string) *folderCopy {
	s.t.Helper()
	c := usageMarker{Call: call, Take: "take-" + call, Name: "workspace", Dir: s.dir, Folder: ".", Place: keyOf(s.dir) + "-" + keyOf("."), Joins: true}
	one := &folderCopy{usageMarker: c, turn: make(chan struct{}, 1)}
	var err error
	one.root, err = host.OpenRoot(host.Real(), s.dir)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = one.root.Close() })
	one.usageMarker.Root = one.root.Identity()
	one.snapshotStore, err = s.storeFor(c)
	require.NoError(s.t, err)
	require.NoError(s.t, one.fill(s.t.Context(), &s.driver, false, time.Now()))
	require.NoError(s.t, one.hold())
	one.join()
	return one
}

// differ returns the names that differ, with their previous content. Names that
// are only compared by content are left out if it is the same.
func (s *portableEnv) differ(one *folderCopy) map[string]string {
	s.t.Helper()
	before, lost, err := one.differences(s.t.Context(), &s.driver, time.Now())
	require.NoError(s.t, err)
	require.NoError(s.t, lost)
	all := map[string]string{}
	for _, b := range before {
		was := b.Type + ":" + b.Target
		if b.Open != nil {
			r, err := b.Open()
			require.NoError(s.t, err)
			raw, err := io.ReadAll(r)
			require.NoError(s.t, errors.Join(err, r.Close()))
			was = string(raw)
		}
		if was != s.now(b.Path) {
			all[b.Path] = was
		}
	}
	return all
}

// now returns the present state of a name, as differ has the previous one.
func (s *portableEnv) now(name string) string {
	info, err := os.Lstat(s.at(name))
	switch {
	case err != nil:
		return ":" // absent
	case info.IsDir():
		return disk.TypeDir.String() + ":"
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(s.at(name))
		require.NoError(s.t, err)
		return disk.TypeLink.String() + ":" + target
	}
	raw, err := os.ReadFile(s.at(name))
	require.NoError(s.t, err)
	return string(raw)
}

// TestPortableFindsAll checks that each kind of change is found, with what was
// there before. Nothing else is a change.
func TestPortableFindsAll(t *testing.T) {
	long := time.Unix(1e9, 0)
	for name, test := range map[string]struct {
		change func(s *portableEnv) error
		want   map[string]string
	}{
		"nothing": {func(*portableEnv) error { return nil }, map[string]string{}},
		"content": {func(s *portableEnv) error { s.put("f", "new"); return nil }, map[string]string{"f": "old f"}},
		"same size and time": {func(s *portableEnv) error {
			s.put("f", "OLD F")
			return os.Chtimes(s.at("f"), long, long)
		}, map[string]string{"f": "old f"}},
		"added":   {func(s *portableEnv) error { s.put("n/f", "x"); return nil }, map[string]string{"n": ":", "n/f": ":"}},
		"removed": {func(s *portableEnv) error { return os.RemoveAll(s.at("d")) }, map[string]string{"d": "dir:", "d/e": "dir:", "d/e/f": "old d/e/f", "d/f": "old d/f"}},
		"renamed": {func(s *portableEnv) error { return os.Rename(s.at("d/f"), s.at("g")) }, map[string]string{"d/f": "old d/f", "g": ":"}},
		"a file for a folder": {func(s *portableEnv) error {
			return errors.Join(os.RemoveAll(s.at("d/e")), os.WriteFile(s.at("d/e"), []byte("x"), 0o600))
		}, map[string]string{"d/e": "dir:", "d/e/f": "old d/e/f"}},
		"a link for a file": {func(s *portableEnv) error {
			return errors.Join(os.Remove(s.at("f")), os.Symlink("d", s.at("f")))
		}, map[string]string{"f": "old f"}},
		"another target": {func(s *portableEnv) error {
			return errors.Join(os.Remove(s.at("link")), os.Symlink("d/f", s.at("link")))
		}, map[string]string{"link": "link:f"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPortableEnv(t)
			for _, name := range []string{"f", "d/f", "d/e/f"} {
				s.put(name, "old "+name)
			}
			require.NoError(t, os.Chtimes(s.at("f"), long, long))
			require.NoError(t, os.Symlink("f", s.at("link")))
			one := s.take("1")
			require.NoError(t, test.change(s))
			require.Equal(t, test.want, s.differ(one))
		})
	}
}

// TestPortableSettledFiles checks that a file is compared by its times alone
// once a later change must show, and by its content before.
func TestPortableSettledFiles(t *testing.T) {
	s := newPortableEnv(t)
	s.put("f", "old")
	one := s.take("1")
	require.True(t, one.seen["f"].fresh, "it was changed just now")
	t0, err := snapshotClock()
	require.NoError(t, err)
	require.True(t, time.Since(t0) >= clockTick)

	settled := one.seen["f"]
	settled.fresh = false
	one.seen["f"] = settled
	before, _, err := one.differences(t.Context(), &s.driver, time.Now())
	require.NoError(t, err)
	for _, b := range before {
		require.NotEqual(t, "f", b.Path)
	}
	settled.shut = true // such as a file that another program had for itself
	settled.fresh = true
	one.seen["f"] = settled
	one.release()
	delete(one.users, one.Take)
	two := s.take("2")
	require.False(t, two.seen["f"].shut, "it is read again")
	s.put("f", "new")
	require.Equal(t, map[string]string{"f": "old"}, s.differ(two))
}

// TestPortableOverlap checks that of two calls at the same time the first to end
// has all changes so far, and the other one only those after it.
func TestPortableOverlap(t *testing.T) {
	s := newPortableEnv(t)
	s.put("f", "old f")
	a := s.take("1")
	s.put("f", "by one of them")
	b := s.take("2")
	require.Equal(t, map[string]string{"f": "old f"}, s.differ(a), "the second call moved nothing")
	for i := range a.found {
		a.found[i].Pre = "x"
	}
	require.NoError(t, a.announce(files.NewDetectedChanges(host.Real(), journal.Memory())))
	a.recorded()
	a.end()
	a.conclude()
	require.Empty(t, s.differ(b))
	s.put("f", "later")
	require.Equal(t, map[string]string{"f": "by one of them"}, s.differ(b))
}

// TestPortableRecovery checks that another process finds the changes of a call
// whose process died, with what was there before.
func TestPortableRecovery(t *testing.T) {
	s := newPortableEnv(t)
	s.put("f", "first")
	s.put("same", "same")
	died := s.take("died")
	s.put("f", "second")
	s.put("n", "new")

	next, err := NewSnapshotter(s.cfg)
	require.NoError(t, err)
	keep := journal.Memory()
	notes := map[string][]byte{snapshotNotePrefix + died.Take: []byte(`[{"place":"` + died.Place + `","take":"` + died.Take + `"}]`)}
	call := revert.Call{}
	call.Notes = map[string]json.RawMessage{}
	for k, v := range notes {
		call.Notes[k] = v
	}
	found, err := changeFinder{next}.Find(t.Context(), call, keep)
	require.NoError(t, err)
	require.Empty(t, found.Lost)
	var names []string
	for _, c := range found.Changes {
		names = append(names, c.Resource)
	}
	require.ElementsMatch(t, []string{"file://workspace/f", "file://workspace/n"}, names)
	found.Release()
	left, err := markersIn(died.at)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestPortableMark checks that the stored form of a state has all of it.
func TestPortableMark(t *testing.T) {
	s := newPortableEnv(t)
	s.put("f", "x")
	is, _, err := stampOf(s.at("f"))
	require.NoError(t, err)
	require.NotZero(t, is.ino)
	require.NotZero(t, is.ctime)
	for _, e := range []entryState{{root: is, copy: is}, {root: is, shut: true}, {copy: is, fresh: true}} {
		require.Equal(t, e, e.mark().entryState())
	}
}
