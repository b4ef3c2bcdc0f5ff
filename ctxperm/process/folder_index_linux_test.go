//go:build !portable

package process

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/proof/randprog"
)

// warm is a Snapshotter with a watched root, and a call that has begun after
// the watch.
func warm(t *testing.T, prepare func(s *snapshotEnv)) (*snapshotEnv, *folderCopy) {
	s := newSnapshotEnv(t)
	s.cfg.Watch = true
	for _, name := range []string{"f", "g", "d/f", "d/e/f", "d/e/g", "k/f"} {
		s.put(name, "old "+name)
	}
	if prepare != nil {
		prepare(s)
	}
	for i := range 2 { // the copy, and then the watch
		one := s.take(fmt.Sprint("before", i))
		s.differ(one)
		one.done = true
		one.conclude()
	}
	one := s.take("1")
	s.mustBeWarm(one)
	return s, one
}

func (s *snapshotEnv) mustBeWarm(one *folderCopy) {
	s.t.Helper()
	require.True(s.t, one.drain(), "the folder is watched")
}

// walked returns what a whole walk finds, in a store of its own.
func (s *snapshotEnv) walked(one *folderCopy) map[string]bool {
	s.t.Helper()
	other := *one
	other.snapshotStore = openStore(one.at, s.dir)
	all := map[string]bool{}
	_, lost, err := other.differences(s.t.Context(), &s.driver, time.Now())
	require.NoError(s.t, err)
	require.NoError(s.t, lost)
	for _, f := range other.found {
		if e := f.Is.entryState(); !e.root.folder() || !e.copy.folder() || e.root.mode != e.copy.mode {
			all[f.Name] = true
		}
	}
	return all
}

// covers checks that the index finds whatever a walk finds.
func (s *snapshotEnv) covers(one *folderCopy, what string) map[string]string {
	s.t.Helper()
	have := s.differ(one)
	for name := range s.walked(one) {
		require.Contains(s.t, slices.Collect(maps.Keys(have)), name, what)
	}
	return have
}

// TestIndexFindsAll checks, for each kind of change, that the index finds it by
// events alone, or knows that it must walk.
func TestIndexFindsAll(t *testing.T) {
	outside := t.TempDir()
	must := func(err error) { require.NoError(t, err) }
	var mapped []byte
	var open *os.File
	for name, test := range map[string]struct {
		prepare, change func(s *snapshotEnv)
		finds           []string
		cold            bool // it must walk
	}{
		"write":         {nil, func(s *snapshotEnv) { s.put("d/e/f", "new") }, []string{"d/e/f"}, false},
		"new":           {nil, func(s *snapshotEnv) { s.put("new", "new") }, []string{"new"}, false},
		"new folders":   {nil, func(s *snapshotEnv) { s.put("a/b/c/d", "new") }, []string{"a", "a/b", "a/b/c", "a/b/c/d"}, false},
		"removed":       {nil, func(s *snapshotEnv) { must(os.Remove(filepath.Join(s.dir, "d/f"))) }, []string{"d/f"}, false},
		"removed tree":  {nil, func(s *snapshotEnv) { must(os.RemoveAll(filepath.Join(s.dir, "d"))) }, []string{"d", "d/f", "d/e", "d/e/f", "d/e/g"}, false},
		"moved folder":  {nil, func(s *snapshotEnv) { s.move("d", "k/d") }, []string{"d", "d/f", "d/e/f", "k/d", "k/d/e/f"}, false},
		"moved out":     {nil, func(s *snapshotEnv) { must(os.Rename(filepath.Join(s.dir, "d"), filepath.Join(outside, "d"))) }, []string{"d", "d/e/g"}, false},
		"moved, then":   {nil, func(s *snapshotEnv) { s.move("d", "x"); s.put("x/e/f", "new"); s.move("x", "d") }, []string{"d/e/f"}, false},
		"file for dir":  {nil, func(s *snapshotEnv) { must(os.RemoveAll(filepath.Join(s.dir, "d"))); s.put("d", "file") }, []string{"d", "d/e/f"}, false},
		"dir for file":  {nil, func(s *snapshotEnv) { must(os.Remove(filepath.Join(s.dir, "f"))); s.put("f/x", "file") }, []string{"f", "f/x"}, false},
		"mode":          {nil, func(s *snapshotEnv) { must(os.Chmod(filepath.Join(s.dir, "d/e/g"), 0o600)) }, []string{"d/e/g"}, false},
		"mode of dir":   {nil, func(s *snapshotEnv) { must(os.Chmod(filepath.Join(s.dir, "d/e"), 0o700)) }, []string{"d/e"}, false},
		"attribute":     {nil, func(s *snapshotEnv) { must(unix.Setxattr(filepath.Join(s.dir, "g"), "user.x", []byte("y"), 0)) }, []string{"g"}, false},
		"time":          {nil, func(s *snapshotEnv) { must(os.Chtimes(filepath.Join(s.dir, "g"), time.Unix(1, 0), time.Unix(1, 0))) }, []string{"g"}, false},
		"old time back": {nil, func(s *snapshotEnv) { s.sameTime("g", "new g") }, []string{"g"}, false},
		"link":          {nil, func(s *snapshotEnv) { must(os.Link(filepath.Join(s.dir, "f"), filepath.Join(s.dir, "d/link"))) }, []string{"d/link", "f"}, false},
		"by a new link": {nil, func(s *snapshotEnv) {
			must(os.Link(filepath.Join(s.dir, "f"), filepath.Join(s.dir, "d/link")))
			s.put("d/link", "new")
		}, []string{"d/link", "f"}, false},
		"by a link that is gone": {nil, func(s *snapshotEnv) {
			must(os.Link(filepath.Join(s.dir, "f"), filepath.Join(s.dir, "d/link")))
			s.put("d/link", "new")
			must(os.Remove(filepath.Join(s.dir, "d/link")))
		}, []string{"f"}, false},
		"by a link that moved and is gone": {nil, func(s *snapshotEnv) {
			must(os.Link(filepath.Join(s.dir, "f"), filepath.Join(s.dir, "d/link")))
			s.move("d/link", "x")
			s.put("x", "new")
			must(os.Remove(filepath.Join(s.dir, "x")))
		}, []string{"f"}, false},
		"by an older link that moved and is gone": {
			func(s *snapshotEnv) {
				must(os.Link(filepath.Join(s.dir, "f"), filepath.Join(s.dir, "d/link")))
			},
			func(s *snapshotEnv) {
				s.move("d/link", "x")
				s.put("x", "new")
				must(os.Remove(filepath.Join(s.dir, "x")))
			},
			[]string{"f", "d/link"},
			false,
		},
		"by a name outside": {
			func(s *snapshotEnv) { must(os.Link(filepath.Join(s.dir, "f"), filepath.Join(outside, "twin"))) },
			func(*snapshotEnv) { must(os.WriteFile(filepath.Join(outside, "twin"), []byte("new"), 0o644)) },
			[]string{"f"},
			false,
		},
		"mapped before the watch": {
			func(s *snapshotEnv) {
				var err error
				open, err = os.OpenFile(filepath.Join(s.dir, "k/f"), os.O_RDWR, 0)
				must(err)
				mapped, err = unix.Mmap(int(open.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
				must(err)
				must(open.Close())
			},
			func(*snapshotEnv) { mapped[0] = 'X'; must(unix.Msync(mapped, unix.MS_SYNC)) },
			[]string{"k/f"},
			false,
		},
		"mapped and closed": {nil, func(s *snapshotEnv) {
			f, err := os.OpenFile(filepath.Join(s.dir, "g"), os.O_RDWR, 0)
			must(err)
			m, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			must(err)
			must(f.Close())
			m[0] = 'Y'
			must(unix.Munmap(m))
		}, []string{"g"}, false},
		"too many events": {nil, func(s *snapshotEnv) {
			one := s.known[keyOf(s.dir)+"-"+keyOf(".")]
			one.tree.Close() // as after an overflow, which is one more reason to be stale
			s.put("d/e/f", "new")
		}, []string{"d/e/f"}, true},
		"another folder in its place": {nil, func(s *snapshotEnv) {
			must(os.Rename(s.dir, s.dir+".old"))
			must(os.Mkdir(s.dir, 0o755))
			s.put("f", "other")
		}, []string{"f", "g", "d/e/f"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, one := warm(t, test.prepare)
			test.change(s)
			if one.drain(); test.cold {
				require.False(t, one.drain())
			}
			have := s.covers(one, name)
			for _, name := range test.finds {
				require.Contains(t, have, name)
			}
			one.done = true
			one.conclude()
			next := s.take("next")
			require.Empty(t, s.walked(next), "the copy has all")
			if name == "mapped before the watch" {
				mapped[0] = 'Z' // again, and after others have opened many files
				require.NoError(t, unix.Msync(mapped, unix.MS_SYNC))
				for i := range 5000 {
					f, err := os.Open(filepath.Join(s.dir, "d/e", "fg"[i%2:i%2+1]))
					require.NoError(t, err)
					require.NoError(t, f.Close())
				}
				require.Contains(t, s.covers(next, name), "k/f")
				require.NoError(t, unix.Munmap(mapped))
			}
		})
	}
}

func (s *snapshotEnv) move(from, to string) {
	s.t.Helper()
	require.NoError(s.t, os.Rename(filepath.Join(s.dir, from), filepath.Join(s.dir, to)))
}

// sameTime changes a file so that its stamp is as the copy knows it, as if the
// clock had been set back.
func (s *snapshotEnv) sameTime(name, content string) {
	s.t.Helper()
	s.put(name, content)
	store := s.known[keyOf(s.dir)+"-"+keyOf(".")]
	seen := store.seen[name]
	var err error
	seen.root, _, err = stampOf(filepath.Join(s.dir, name))
	require.NoError(s.t, err)
	seen.fresh = false
	store.seen[name] = seen
}

// TestIndexRandom checks the index against walks, with random programs.
func TestIndexRandom(t *testing.T) {
	seeds := 20
	if os.Getenv("INDEX_SEEDS") != "" {
		_, err := fmt.Sscan(os.Getenv("INDEX_SEEDS"), &seeds)
		require.NoError(t, err)
	}
	back, err := os.Getwd()
	require.NoError(t, err)
	defer func() { require.NoError(t, os.Chdir(back)) }()
	for seed := range seeds {
		s, one := warm(t, nil)
		for round := range 5 {
			require.NoError(t, os.Chdir(s.dir))
			require.NoError(t, randprog.Act(randprog.Config{Seed: uint64(seed*100 + round), Steps: 25}))
			require.NoError(t, os.Chdir(back))
			s.covers(one, fmt.Sprintf("seed %d, round %d", seed, round))
			if round%2 == 0 {
				one.done = true
				one.conclude()
				one = s.take(fmt.Sprint("round", round))
				require.Empty(t, s.walked(one), "seed %d, round %d", seed, round)
			}
			one.drain()
		}
		one.done = true
		one.conclude()
		require.NoError(t, s.Close())
	}
}
