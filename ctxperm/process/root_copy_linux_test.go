package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/sandbox"
)

// later is after every action of a test.
var later = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

func newSnapshot(t *testing.T) *rootCopy {
	return &rootCopy{root: folder(t, "root"), dir: folder(t, "copy"), seen: map[string]entryState{}}
}

// refreshed updates the copy from the root, as an ordinary user.
func (s *rootCopy) refreshed(t *testing.T, hidden ...string) (err error) {
	t.Helper()
	asUser(t, func() { err = s.refresh(t.Context(), hidden, later) })
	return err
}

// TestCopyIsLikeItsRoot changes a root and its copy at random. After the
// update, a user who may not read everything sees the same in both. The copy
// shows nothing that this user may not read.
func TestCopyIsLikeItsRoot(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // to be had again
			s := newSnapshot(t)
			for round := range 8 {
				var want, got map[string]string
				asUser(t, func() {
					for range r.IntN(20) {
						changeRandomly(r, s.root)
					}
					for range r.IntN(10) {
						changeRandomly(r, s.dir)
					}
					if _, err := os.ReadDir(s.root); err != nil {
						require.NoError(t, os.Chmod(s.root, 0o755))
					}
				})
				require.NoError(t, s.refreshed(t), round)
				asUser(t, func() { want, got = treeState(t, s.root), treeState(t, s.dir) })
				require.Equal(t, want, got, round)
				for name, seen := range s.seen {
					if seen.shut {
						require.Zero(t, seen.copy.mode&0o7777, name)
					}
				}
			}
		})
	}
}

// TestChangesOfACopy applies the reported changes to the previous state. The
// result is what the program left, including its bits, even if they permit no
// reads.
func TestChangesOfACopy(t *testing.T) {
	for seed := range uint64(80) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // to be had again
			s := newSnapshot(t)
			asUser(t, func() {
				for range 25 {
					changeRandomly(r, s.root)
				}
				open(t, s.root)
			})
			require.NoError(t, s.refreshed(t))
			model := treeState(t, s.dir)
			asUser(t, func() {
				for range 1 + r.IntN(12) {
					changeRandomly(r, s.dir)
				}
			})
			if os.Getuid() != 0 {
				t.Skip("only the root user sees everything that an ordinary user left")
			}
			want := treeState(t, s.dir)
			asUser(t, func() {
				all, err := s.changes()
				require.NoError(t, err)
				for _, w := range all {
					replay(t, s, model, w)
				}
			})
			delete(want, ".")
			delete(model, ".")
			// A new pipe is skipped, and a removed one refused.
			pipe := func(_, line string) bool { return len(line) == len("10644") && line[0] == '1' }
			maps.DeleteFunc(want, pipe)
			maps.DeleteFunc(model, pipe)
			for name, line := range want { // the change set handles the names of one file
				want[name], _, _ = strings.Cut(line, " = ")
			}
			for name, line := range model {
				model[name], _, _ = strings.Cut(line, " = ")
			}
			require.Equal(t, want, model)
			require.NoError(t, s.refreshed(t))
			asUser(t, func() { require.Equal(t, treeState(t, s.root), treeState(t, s.dir)) })
		})
	}
}

// open gives an ordinary user the right to read everything in a tree.
func open(t *testing.T, dir string) {
	require.NoError(t, filepath.WalkDir(dir, func(at string, d os.DirEntry, err error) error {
		switch {
		case d.IsDir():
			return os.Chmod(at, 0o755)
		case d.Type().IsRegular():
			return os.Chmod(at, 0o644)
		}
		return err
	}))
}

// replay applies a reported change to the description of a tree.
func replay(t *testing.T, s *rootCopy, model map[string]string, w sandbox.OverlayEntry) {
	clear := func() {
		maps.DeleteFunc(model, func(name, _ string) bool { return strings.HasPrefix(name, w.Name+"/") })
	}
	line := fmt.Sprintf("%o", w.Mode.Perm())
	if w.Mode&os.ModeSetgid != 0 {
		line = "2" + line
	}
	if len(line) < 3 {
		line = strings.Repeat("0", 3-len(line)) + line
	}
	if len(line) < 4 {
		line = "0" + line
	}
	switch w.Kind {
	case sandbox.Deleted:
		clear()
		delete(model, w.Name)
		return
	case sandbox.Other:
		clear()
		delete(model, w.Name)
		return
	case sandbox.Link:
		clear()
		model[w.Name] = "120777 -> " + w.Target
		return
	case sandbox.Folder:
		line = "4" + line
	case sandbox.File:
		clear()
		f, err := s.open(w.Name)
		require.NoError(t, err)
		data, err := io.ReadAll(f)
		require.NoError(t, errors.Join(err, f.Close()))
		line = fmt.Sprintf("10%s %q %d.%d", line, data, w.Mtime.Unix(), w.Mtime.Nanosecond())
	}
	for _, name := range []string{"user.a0", "user.a1"} {
		if value, ok := w.Xattrs[name]; ok {
			line += fmt.Sprintf(" %s=%q", name, value)
		}
	}
	model[w.Name] = line
}

// TestShutIsRefused checks that changes to a file that this user may not read
// cannot be reported, because the program did not see its content. Its removal
// can.
func TestShutIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		do  func(dir string) error
		why string
	}{
		"nothing":      {func(string) error { return nil }, ""},
		"bits":         {func(dir string) error { return os.Chmod(dir+"/f", 0o600) }, "f may not be read by this user"},
		"another name": {func(dir string) error { return os.Rename(dir+"/f", dir+"/g") }, "g may not be read by this user"},
		"a link":       {func(dir string) error { return os.Link(dir+"/f", dir+"/g") }, "f may not be read by this user"},
		"a twin":       {func(dir string) error { return os.Chmod(dir+"/twin", 0o600) }, "f may not be read by this user"},
		"a folder":     {func(dir string) error { return os.Chmod(dir+"/d", 0o700) }, "d may not be read by this user"},
		"removal": {func(dir string) error {
			return errors.Join(os.Remove(dir+"/f"), os.Remove(dir+"/twin"), os.Remove(dir+"/d"))
		}, "d gone, f gone, twin gone"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSnapshot(t)
			write(t, s.root+"/f", "secret")
			write(t, s.root+"/d/below", "secret")
			asUser(t, func() {
				require.NoError(t, os.Link(s.root+"/f", s.root+"/twin"))
				require.NoError(t, errors.Join(os.Chmod(s.root+"/f", 0), os.Chmod(s.root+"/d", 0)))
			})
			require.NoError(t, s.refreshed(t))
			asUser(t, func() {
				require.NoError(t, tt.do(s.dir))
				all, err := s.changes()
				if strings.Contains(tt.why, "may not") {
					require.ErrorContains(t, err, tt.why)
					return
				}
				require.NoError(t, err)
				var gone []string
				for _, w := range all {
					if w.Name != "." {
						require.Equal(t, sandbox.Deleted, w.Kind)
						gone = append(gone, w.Name+" gone")
					}
				}
				require.Equal(t, tt.why, strings.Join(gone, ", "))
			})
		})
	}
}

// TestHiddenIsNotCopied checks that a hidden name is not in the copy, even if
// the copy had it before.
func TestHiddenIsNotCopied(t *testing.T) {
	s := newSnapshot(t)
	for _, name := range []string{"a", "d/b", "d/e/c"} {
		write(t, filepath.Join(s.root, name), name)
	}
	require.NoError(t, s.refreshed(t))
	require.Len(t, s.seen, 6)
	require.NoError(t, s.refreshed(t, "a", "d/e"))
	require.NoFileExists(t, s.dir+"/a")
	require.NoDirExists(t, s.dir+"/d/e")
	require.FileExists(t, s.dir+"/d/b")
}

// TestLatelyTouchedIsCopiedAgain checks files touched while the copy was made.
// Their time cannot show a further change.
func TestLatelyTouchedIsCopiedAgain(t *testing.T) {
	for name, since := range map[string]time.Time{"settled": later, "lately": {}} {
		t.Run(name, func(t *testing.T) {
			s := newSnapshot(t)
			write(t, s.root+"/f", "old")
			asUser(t, func() { require.NoError(t, s.refresh(t.Context(), nil, since)) })
			write(t, s.root+"/f", "new")
			seen := s.seen["f"]
			is, _, err := stampOf(s.root + "/f")
			require.NoError(t, err)
			seen.root = is // as if both were within one tick of the clock
			s.seen["f"] = seen
			require.NoError(t, s.refreshed(t))
			data, err := os.ReadFile(s.dir + "/f")
			require.NoError(t, err)
			require.Equal(t, map[string]string{"settled": "old", "lately": "new"}[name], string(data))
		})
	}
}

// TestCopyThatFails checks that every failure of a copy is reported. A name
// that was not copied never counts as missing in the root.
func TestCopyThatFails(t *testing.T) {
	gone := errors.New("enough")
	for name, tt := range map[string]struct {
		spoil func(t *testing.T, s *rootCopy)
		want  string
	}{
		"the root is gone": {func(t *testing.T, s *rootCopy) { require.NoError(t, os.RemoveAll(s.root)) }, "no such file"},
		"the root may not be looked at": {func(t *testing.T, s *rootCopy) {
			above := filepath.Dir(s.root)
			require.NoError(t, os.Chmod(above, 0))
		}, "may not be looked at"},
		"no room for a folder": {func(t *testing.T, s *rootCopy) { s.dir = filepath.Dir(s.dir) + "/none/copy" }, "no such file"},
		"no right to the copy": {func(t *testing.T, s *rootCopy) {
			require.NoError(t, os.Mkdir(s.dir+"/theirs", 0o755))
			require.NoError(t, os.WriteFile(s.dir+"/theirs/f", nil, 0o600))
		}, "permission denied"},
		"a name that is too long": {func(t *testing.T, s *rootCopy) {
			for len(s.dir) < 4000 {
				s.dir += "/" + strings.Repeat("x", min(200, 4010-len(s.dir)))
			}
			require.NoError(t, os.MkdirAll(s.dir, 0o777))
			for at := s.dir; len(at) > len(os.TempDir()) && os.Getuid() == 0; at = filepath.Dir(at) {
				require.NoError(t, os.Chown(at, nobody, nobody))
			}
			write(t, s.root+"/"+strings.Repeat("l", 200), "x")
		}, "name too long"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "no right to the copy" && os.Getuid() != 0 {
				t.Skip("only the root user can make files of others")
			}
			s := newSnapshot(t)
			write(t, s.root+"/f", "x")
			tt.spoil(t, s)
			require.ErrorContains(t, s.refreshed(t), tt.want)
			require.Empty(t, s.seen)
		})
	}
	s := newSnapshot(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	require.ErrorIs(t, s.refresh(ctx, nil, later), gone)
}

// TestFullDisk checks that a copy fails without space, for files, folders,
// links and attributes, and succeeds as soon as there is space.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only the root user can mount a small file system")
	}
	s := newSnapshot(t)
	if err := unix.Mount("tmpfs", s.dir, "tmpfs", 0, "size=64k,nr_inodes=8"); err != nil {
		t.Skip("nothing can be mounted here: ", err)
	}
	defer func() { require.NoError(t, unix.Unmount(s.dir, 0)) }()
	for what, make := range map[string]func(at string) error{
		"a large file": func(at string) error { return os.WriteFile(at, []byte(strings.Repeat("x", 256<<10)), 0o644) },
		"many files":   func(at string) error { return each(at, func(n string) error { return os.WriteFile(n, nil, 0o644) }) },
		"many folders": func(at string) error { return each(at, func(n string) error { return os.Mkdir(n, 0o755) }) },
		"many links":   func(at string) error { return each(at, func(n string) error { return os.Symlink("a", n) }) },
	} {
		require.NoError(t, make(s.root+"/"+what), what)
		require.ErrorContains(t, s.refresh(t.Context(), nil, later), "no space left", what)
		require.NoError(t, os.RemoveAll(s.root+"/"+what))
		require.NoError(t, s.refresh(t.Context(), nil, later), what)
		require.Equal(t, treeState(t, s.root), treeState(t, s.dir))
	}
}

func each(dir string, do func(name string) error) error {
	err := os.Mkdir(dir, 0o755)
	for i := range 20 {
		err = errors.Join(err, do(fmt.Sprint(dir, "/", i)))
	}
	return err
}

// TestPipesOfACopy checks that a program sees the pipes of a root. Data through
// a pipe is no change, and removing one is.
func TestPipesOfACopy(t *testing.T) {
	s := newSnapshot(t)
	asUser(t, func() {
		pipe := filepath.Join(s.root, "pipe")
		require.NoError(t, unix.Mkfifo(pipe, 0o600))
		require.NoError(t, os.Chmod(pipe, 0o640))
	})
	require.NoError(t, s.refreshed(t))
	at := filepath.Join(s.dir, "pipe")
	var is unix.Stat_t
	require.NoError(t, unix.Lstat(at, &is))
	require.Equal(t, uint32(unix.S_IFIFO|0o640), is.Mode)
	changes := func() (all []sandbox.OverlayEntry) {
		asUser(t, func() {
			var err error
			all, err = s.changes()
			require.NoError(t, err)
		})
		return all
	}
	asUser(t, func() {
		both, err := os.OpenFile(at, os.O_RDWR, 0)
		require.NoError(t, err)
		_, err = both.WriteString("through")
		require.NoError(t, err)
		require.NoError(t, both.Close())
		require.NoError(t, os.Chtimes(at, time.Unix(1, 0), time.Unix(1, 0)))
	})
	require.Empty(t, changes())
	asUser(t, func() { require.NoError(t, os.Remove(at)) })
	all := changes()
	require.Len(t, all, 2) // includes the folder
	require.Equal(t, sandbox.Deleted, all[1].Kind)
}

// TestSparseFilesStaySparse checks that a copy of a sparse file keeps its
// holes.
func TestSparseFilesStaySparse(t *testing.T) {
	s := newSnapshot(t)
	write(t, s.root+"/f", "begin")
	require.NoError(t, os.Truncate(s.root+"/f", 4<<20))
	require.NoError(t, s.refreshed(t))
	is, raw, err := stampOf(s.dir + "/f")
	require.NoError(t, err)
	require.EqualValues(t, 4<<20, is.size)
	require.Less(t, raw.Blocks*512, int64(1<<20))
	data, err := os.ReadFile(s.dir + "/f")
	require.NoError(t, err)
	require.Equal(t, "begin", strings.TrimRight(string(data), "\x00"))
}

// TestRootItself checks that the bits that a program sets on the root are
// reported. A read-only root does not count as made unreadable by a program.
func TestRootItself(t *testing.T) {
	for name, tt := range map[string]struct {
		was, left os.FileMode
		want      string
	}{"read-only": {0o500, 0o500, ""}, "shut": {0o755, 0, ". 0"}, "opened": {0o500, 0o777, ". 777"}} {
		s := newSnapshot(t)
		write(t, s.root+"/f", "x")
		asUser(t, func() { require.NoError(t, os.Chmod(s.root, tt.was)) })
		require.NoError(t, s.refreshed(t))
		asUser(t, func() {
			if tt.was != tt.left {
				require.NoError(t, os.Chmod(s.dir, tt.left))
			}
			all, err := s.changes()
			require.NoError(t, err)
			var got []string
			for _, w := range all {
				got = append(got, fmt.Sprintf("%s %o", w.Name, w.Mode))
			}
			require.Equal(t, tt.want, strings.Join(got, ", "), name)
		})
	}
}
