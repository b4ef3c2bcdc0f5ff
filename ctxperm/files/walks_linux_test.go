package files_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
)

// walkCounter is a root that counts its operations, by name. "root" operations
// walk to a folder, "folder" operations start at a pinned one.
type walkCounter struct {
	disk.Root
	at string
	n  map[string]int
}

func (c *walkCounter) count(op string) { c.n[c.at+" "+op]++ }

func (c *walkCounter) Lstat(name string) (disk.Info, error) {
	c.count("lstat")
	return c.Root.Lstat(name)
}

func (c *walkCounter) Open(name string) (disk.File, error) {
	c.count("open")
	return c.Root.Open(name)
}

func (c *walkCounter) Create(name string, perm fs.FileMode) (disk.File, error) {
	c.count("create")
	return c.Root.Create(name, perm)
}

func (c *walkCounter) Readlink(name string) (string, error) {
	c.count("readlink")
	return c.Root.Readlink(name)
}

func (c *walkCounter) Xattrs(name string) (map[string][]byte, error) {
	c.count("xattrs")
	return c.Root.Xattrs(name)
}

func (c *walkCounter) Chmod(name string, perm fs.FileMode) error {
	c.count("chmod")
	return c.Root.Chmod(name, perm)
}

func (c *walkCounter) SetMtime(name string, t time.Time) error {
	c.count("mtime")
	return c.Root.SetMtime(name, t)
}

func (c *walkCounter) TryLease(name string) error {
	c.count("lease")
	return c.Root.TryLease(name)
}

func (c *walkCounter) Remove(name string) error {
	c.count("remove")
	return c.Root.Remove(name)
}

func (c *walkCounter) Exchange(a, b string) error {
	c.count("rename")
	return c.Root.Exchange(a, b)
}

func (c *walkCounter) RenameNoReplace(from, to string) error {
	c.count("rename")
	return c.Root.RenameNoReplace(from, to)
}

func (c *walkCounter) SyncDir(name string) error {
	c.count("sync")
	return c.Root.SyncDir(name)
}

func (c *walkCounter) PinFolder(name string) (disk.Root, error) {
	c.count("pin")
	pinner, ok := c.Root.(disk.FolderPinner)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	view, err := pinner.PinFolder(name)
	return &walkCounter{view, "folder", c.n}, err
}

func (c *walkCounter) Reopen(name string, was disk.Info) (disk.OpenMetadata, error) {
	c.count("reopen")
	reopener, ok := c.Root.(disk.Reopener)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return reopener.Reopen(name, was)
}

// versionOf returns the version that a reader tells, if it does.
func versionOf(t *testing.T, r io.Reader) (string, bool) {
	t.Helper()
	v, ok := r.(versioned)
	require.True(t, ok)
	return v.Version(t.Context())
}

// take returns the counts since the last call.
func (c *walkCounter) take() map[string]int {
	out := maps.Clone(c.n)
	clear(c.n)
	return out
}

// countWalks makes an environment count its walks. It skips the test if the
// system cannot pin.
func countWalks(t *testing.T) (*testEnv, *walkCounter) {
	t.Helper()
	w := newTestEnv(t)
	straight := disk.WithoutLinks(w.root)
	f := straight.Features()
	if _, ok := straight.(disk.FolderPinner); !ok || !f.Straight || !f.Exchange || !f.Lease || !f.Xattrs {
		t.Skip("this system works with weaker steps")
	}
	require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "dir/sub"), 0o755))
	w.put("dir/sub/f", "before", 0o640)
	c := &walkCounter{straight, "root", map[string]int{}}
	w.root = c
	return w, c
}

// TestWalks bounds the operations on the disk of one write, of its verification
// and of its revert, exactly: each more is a system call or several. A new one
// needs a reason.
func TestWalks(t *testing.T) {
	w, c := countWalks(t)
	git := map[string]int{"root readlink": 3, "root open": 3} // .git and HEAD in each folder above
	with := func(all map[string]int) map[string]int {
		for op, n := range git {
			all[op] += n
		}
		return all
	}
	changes := w.changes(func(ctx context.Context, f *files.Files) error {
		return f.Write(ctx, "dir/sub/f", []byte("after"), files.WriteOptions{})
	})
	require.Len(t, changes, 1)
	require.Equal(t, with(map[string]int{
		"root pin":      2, // to read, and to change
		"folder lstat":  8, // the target to learn its type, the folder to learn that and its time, the target and the displaced file before and after their reads, the folder to set its time
		"folder reopen": 2, // the target, the displaced file
		"folder create": 1, "folder rename": 2, "folder remove": 1, "folder sync": 1, "folder mtime": 1,
	}), c.take())

	world := fileInternals.View(func(string) (disk.Root, bool) { return w.root, true }, w.host(), w.journal, nil, changes)
	r, err := world.Open(t.Context(), changes[0].Resource)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "after", string(data))
	version, ok := versionOf(t, r)
	require.True(t, ok)
	require.Equal(t, string(changes[0].Post), version)
	require.NoError(t, r.Close())
	require.Equal(t, map[string]int{"root pin": 1, "folder lstat": 2, "folder reopen": 1}, c.take())

	w.apply(w.scheme(), w.plan(w.scheme(), changes))
	require.Equal(t, "before", w.read("dir/sub/f"))
	got := c.take()
	require.Equal(t, map[string]int{
		"root pin": 4, "root sync": 1,
		// What a dead process can have left (4 names), the target before and after its read, its folder's time, and a saved
		// version; then the folder's time and type, the target and the displaced file before and after their reads, and the
		// folder to set its time.
		"folder lstat": 15, "folder reopen": 3,
		"folder create": 1, "folder rename": 2, "folder remove": 1, "folder sync": 1, "folder mtime": 1,
	}, got)
}

// versioned is a reader of a view that knows the version of what it read.
type versioned interface {
	Version(ctx context.Context) (string, bool)
}

// TestVersionOfRead checks that a reader of a view tells no version if it has
// not read all, or if the file is not the one that it read any more.
func TestVersionOfRead(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"replaced": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path+"2", []byte("before"), 0o640))
			require.NoError(t, os.Rename(path+"2", path))
		},
		"written": func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte("other text"), 0o640)) },
		"bits":    func(t *testing.T, path string) { require.NoError(t, os.Chmod(path, 0o600)) },
		"removed": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"linked": func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, path+"2"))
			require.NoError(t, os.Symlink("f2", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := countWalks(t)
			const resource = "file://workspace/dir/sub/f"
			world := fileInternals.View(func(string) (disk.Root, bool) { return w.root, true }, w.host(), w.journal, []string{resource}, nil)
			r, err := world.Open(t.Context(), resource)
			require.NoError(t, err)
			defer func() { _ = r.Close() }()
			_, err = io.ReadFull(r, make([]byte, len("before")))
			require.NoError(t, err)
			_, ok := versionOf(t, r)
			require.False(t, ok, "there may be more")
			_, err = r.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			is, ok := versionOf(t, r)
			require.True(t, ok)
			version, err := world.Version(t.Context(), resource)
			require.NoError(t, err)
			require.Equal(t, version, is)
			change(t, filepath.Join(w.dir, "dir/sub/f"))
			_, ok = versionOf(t, r)
			require.False(t, ok)
		})
	}
}

// TestFolderMovesDuringWrite moves the folder of a file away at each step of a
// write, and puts another one in its place. The write happens in one of them as
// a whole, never in both, and leaves nothing behind.
func TestFolderMovesDuringWrite(t *testing.T) {
	moved := 0
	for step, more := 1, true; more; step++ {
		w, _ := countWalks(t)
		more = false
		left, h := step, w.host()
		h.OnPoint = func(id string) error {
			if !strings.HasPrefix(id, "files.") {
				return nil
			}
			if left--; left == 0 {
				more = true
				require.NoError(t, os.Rename(filepath.Join(w.dir, "dir/sub"), filepath.Join(w.dir, "dir/moved")))
				require.NoError(t, os.Mkdir(filepath.Join(w.dir, "dir/sub"), 0o755))
				w.put("dir/sub/f", theirs, 0o640)
			}
			return nil
		}
		err := w.do(h, func(ctx context.Context, f *files.Files) error {
			return f.Write(ctx, "dir/sub/f", []byte("ours"), files.WriteOptions{})
		})
		if !more {
			require.NoError(t, err)
			break
		}
		all := w.tree()
		names := slices.Sorted(maps.Keys(all))
		require.Equal(t, []string{"dir", "dir/moved", "dir/moved/f", "dir/sub", "dir/sub/f"}, names, "step %d", step)
		got := [2]string{all["dir/moved/f"].data, all["dir/sub/f"].data}
		switch got {
		case [2]string{"ours", theirs}: // as if it moved after the write
			require.NoError(t, err)
			moved++
		case [2]string{"before", "ours"}: // as if it moved before the write
			require.NoError(t, err)
		default:
			require.Equal(t, [2]string{"before", theirs}, got, "step %d: nothing was written", step)
			require.Error(t, err, "step %d", step)
		}
		w.revert()
		all = w.tree()
		require.NotContains(t, []string{"ours"}, all["dir/sub/f"].data, "step %d", step)
	}
	require.Positive(t, moved)
}
