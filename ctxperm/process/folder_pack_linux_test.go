//go:build !portable

package process

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// syncedDisk knows what a power failure leaves of a folder, at the least: the
// content of each file, and the names in each folder, as of their last sync.
type syncedDisk struct {
	t     *testing.T
	dir   string
	mu    sync.Mutex
	files map[uint64][]byte
	names map[string]map[string]uint64 // by folder
	after func()                       // is called after each sync
}

func inodeOf(t *testing.T, at string) (ino uint64, folder bool) {
	is, _, err := stampOf(at)
	require.NoError(t, err)
	return is.ino, is.folder()
}

func (d *syncedDisk) sync(f *os.File) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	ino, folder := inodeOf(d.t, f.Name())
	if folder {
		found, err := os.ReadDir(f.Name())
		require.NoError(d.t, err)
		d.names[f.Name()] = map[string]uint64{}
		for _, e := range found {
			d.names[f.Name()][e.Name()], _ = inodeOf(d.t, filepath.Join(f.Name(), e.Name()))
		}
	} else {
		raw, err := os.ReadFile(f.Name())
		require.NoError(d.t, err)
		d.files[ino] = raw
	}
	d.after()
	return nil
}

// lost makes the folder at as after a power failure now.
func (d *syncedDisk) lost(at string) *snapshotStore {
	to := d.t.TempDir()
	d.restore(at, to)
	list, _, err := stampOf(filepath.Join(to, listFile))
	logs, _ := filesIn(to, logPrefix)
	for _, name := range logs { // the log belongs to the list by its inode
		if err == nil && strings.HasPrefix(filepath.Base(name), fmt.Sprintf("%s%d-", logPrefix, d.names[at][listFile])) {
			require.NoError(d.t, os.Rename(name, (&snapshotStore{at: to, list: list}).logFile()))
		}
	}
	return openStore(to, d.dir)
}

func (d *syncedDisk) restore(from, to string) {
	for name, ino := range d.names[from] {
		if _, folder := d.names[filepath.Join(from, name)]; folder || name == copyFolder {
			require.NoError(d.t, os.MkdirAll(filepath.Join(to, name), 0o700))
			d.restore(filepath.Join(from, name), filepath.Join(to, name))
			continue
		}
		require.NoError(d.t, os.WriteFile(filepath.Join(to, name), d.files[ino], 0o600))
	}
}

// contents returns what a copy has of each file.
func contents(t *testing.T, s *snapshotStore) map[string]string {
	all := map[string]string{}
	for name, e := range s.seen {
		if e.root.mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		r, err := s.open(name)
		require.NoError(t, err, name)
		raw, err := io.ReadAll(r)
		require.NoError(t, errors.Join(err, r.Close()))
		all[name] = string(raw)
	}
	return all
}

// TestPowerFailure cuts the power after each sync of several calls. What is left
// of the copy can be read, and is that of a call once its marker is there.
func TestPowerFailure(t *testing.T) {
	s := newSnapshotEnv(t)
	large := strings.Repeat("large ", maxPacked)
	d := &syncedDisk{t: t, dir: s.dir, files: map[uint64][]byte{}, names: map[string]map[string]uint64{}}
	at := filepath.Join(s.cfg.Dir, keyOf(s.dir)+"-"+keyOf("."))
	now := map[string]string{}
	cuts := 0
	d.after = func() {
		cuts++
		left := d.lost(at)
		all := contents(t, left)
		some, err := markersIn(left.at)
		require.NoError(t, err)
		for _, m := range some {
			if m.Take == "take-"+fmt.Sprint(now["call"]) {
				want := maps.Clone(now)
				delete(want, "call")
				require.Equal(t, want, all)
			}
		}
	}
	s.sync = d.sync
	s.flush = func(f *os.File) error {
		t.Error("few files are synced one by one")
		return nil
	}
	put := func(name, content string) {
		s.put(name, content)
		now[name] = content
	}
	for call := range 6 {
		put("f", fmt.Sprint("content ", call))
		put(fmt.Sprint("d/", call), "new")
		if call%2 == 0 {
			put("large", large+fmt.Sprint(call))
		}
		if call > 2 {
			require.NoError(t, os.Remove(filepath.Join(s.dir, "d", fmt.Sprint(call-2))))
			delete(now, fmt.Sprint("d/", call-2))
		}
		now["call"] = fmt.Sprint(call)
		one := s.take(fmt.Sprint(call))
		held := d.lost(at)
		markers, err := markersIn(held.at)
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(markers, func(m usageMarker) bool { return m.Take == one.Take }), "the marker is durable")
		want := maps.Clone(now)
		delete(want, "call")
		require.Equal(t, want, contents(t, held), "the copy is durable before the call")
		put("f", fmt.Sprint("by call ", call))
		s.differ(one)
		one.done = true
		one.conclude()
	}
	require.Greater(t, cuts, 30)
}

// TestRepack checks that a pack with much unused content is replaced, and that a
// damaged one is found.
func TestRepack(t *testing.T) {
	s := newSnapshotEnv(t)
	s.put("f", "text")
	s.put("g", "other text")
	require.NoError(t, os.Symlink("f", filepath.Join(s.dir, "l")))
	one := s.take("1")
	first := one.pack.name
	one.release()
	require.NoError(t, os.Truncate(one.packPath(), minRepack+1)) // as after many calls
	clear(s.known)
	s.put("g", "new text")
	one = s.take("2")
	require.NotEqual(t, first, one.pack.name)
	require.Less(t, one.pack.size, int64(100))
	left, err := filesIn(one.at, packPrefix)
	require.NoError(t, err)
	require.Equal(t, []string{one.packPath()}, left)
	require.Equal(t, map[string]string{"f": "text", "g": "new text"}, contents(t, one.snapshotStore))
	s.put("f", "changed")
	require.NoError(t, os.Remove(filepath.Join(s.dir, "l")))
	require.Equal(t, "text", s.differ(one)["f"])
	require.Equal(t, "link", s.differ(one)["l"])

	require.NoError(t, os.WriteFile(one.packPath(), []byte("damaged damaged damaged damaged"), 0o600))
	_, err = one.open("f")
	require.ErrorContains(t, err, "damaged")
	one.release()

	require.NoError(t, os.Truncate(one.packPath(), 2))
	clear(s.known)
	one = s.take("3")
	require.Equal(t, map[string]string{"f": "changed", "g": "new text"}, contents(t, one.snapshotStore), "what is not there is copied anew")
}

// TestPackedOrNot checks that names change between the pack and files of their
// own.
func TestPackedOrNot(t *testing.T) {
	large := strings.Repeat("large ", maxPacked)
	attribute := func(s *snapshotEnv, name string) {
		require.NoError(t, unix.Setxattr(filepath.Join(s.dir, name), "user.x", []byte("y"), 0))
	}
	none := func(*snapshotEnv) {}
	for name, step := range map[string][2]func(s *snapshotEnv){
		"grows":                 {func(s *snapshotEnv) { s.put("d/f", "small") }, func(s *snapshotEnv) { s.put("d/f", large) }},
		"shrinks":               {func(s *snapshotEnv) { s.put("d/f", large) }, func(s *snapshotEnv) { s.put("d/f", "small") }},
		"attribute":             {func(s *snapshotEnv) { s.put("d/f", "small") }, func(s *snapshotEnv) { attribute(s, "d/f") }},
		"attribute of a folder": {func(s *snapshotEnv) { s.put("d/f", large) }, func(s *snapshotEnv) { attribute(s, "d") }},
		"no attribute of a folder": {func(s *snapshotEnv) { s.put("d/f", large); attribute(s, "d") }, func(s *snapshotEnv) {
			require.NoError(t, unix.Removexattr(filepath.Join(s.dir, "d"), "user.x"))
			s.put("d/g", large)
		}},
		"file for a folder": {func(s *snapshotEnv) { s.put("d/f", large) }, func(s *snapshotEnv) {
			require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "d")))
			s.put("d", "small")
		}},
		"folder for a file": {func(s *snapshotEnv) { s.put("d", large) }, func(s *snapshotEnv) {
			require.NoError(t, os.Remove(filepath.Join(s.dir, "d")))
			s.put("d/f", large)
		}},
		"closed folder": {func(s *snapshotEnv) {
			s.put("d/f", large)
			attribute(s, "d")
			require.NoError(t, os.Chmod(filepath.Join(s.dir, "d"), 0o500))
		}, func(s *snapshotEnv) { require.NoError(t, unix.Removexattr(filepath.Join(s.dir, "d"), "user.x")) }},
		"nothing": {func(s *snapshotEnv) { s.put("d/f", large) }, none},
	} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprint(name, again), func(t *testing.T) {
				s := newSnapshotEnv(t)
				step[0](s)
				one := s.take("1")
				have := contents(t, one.snapshotStore)
				step[1](s)
				s.differ(one)
				require.Equal(t, have, contents(t, one.snapshotStore))
				one.done = true
				one.conclude()
				if again {
					clear(s.known) // as another process
				}
				two := s.take("2")
				require.Empty(t, s.differ(two))
				want := map[string]string{}
				for name := range two.seen {
					if raw, err := os.ReadFile(filepath.Join(s.dir, name)); err == nil {
						want[name] = string(raw)
					}
				}
				require.NotEmpty(t, want)
				require.Equal(t, want, contents(t, two.snapshotStore))
				two.done = true
				two.conclude()
				clear(s.known)
				s.take("3")
				scan, err := openStore(two.at, s.dir).check(t.Context())
				require.NoError(t, err)
				require.Empty(t, scan)
			})
		}
	}
}
