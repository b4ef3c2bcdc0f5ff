//go:build !portable

package disk_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/disk"
)

// arena is a root whose directory "door" is continuously exchanged with a link
// to a folder outside. That folder has files of the same names.
type arena struct {
	root, outside string
	stop          atomic.Bool
	swaps         atomic.Int64
	done          sync.WaitGroup
}

// outsideNames returns the names outside: one file for each name that the test
// reads, moves, exchanges or removes inside.
func outsideNames() []string { return []string{"file", "made", "moved"} }

func newArena(t *testing.T) *arena {
	t.Helper()
	a := &arena{root: t.TempDir(), outside: t.TempDir()}
	door, trap := filepath.Join(a.root, "door"), filepath.Join(a.root, "trap")
	require.NoError(t, os.Mkdir(door, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(door, "file"), []byte("inside"), 0o600))
	for _, name := range outsideNames() {
		require.NoError(t, os.WriteFile(filepath.Join(a.outside, name), []byte("secret"), 0o600))
	}
	require.NoError(t, os.Symlink(a.outside, trap))
	a.done.Go(func() {
		for !a.stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, door, unix.AT_FDCWD, trap, unix.RENAME_EXCHANGE)
			a.swaps.Add(1)
		}
	})
	t.Cleanup(func() {
		a.stop.Store(true)
		a.done.Wait()
	})
	return a
}

func TestSwappedParentNeverLeadsOut(t *testing.T) {
	eachWalker(t, func(t *testing.T, open func(*testing.T, string) disk.Root) {
		a := newArena(t)
		naive := 0
		r := open(t, a.root)
		reads, writes := 0, 0
		for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end) || naive*reads*writes == 0 && a.swaps.Load() < 5_000_000; {
			content := readThrough(r)
			require.NotEqual(t, "secret", content)
			if content != "" {
				reads++
			}
			writes += changeAll(r)
			if a.naiveRead() == "secret" {
				naive++
			}
		}
		a.stop.Store(true)
		a.done.Wait()
		t.Logf("%d swaps, %d reads, %d writes, naive control leaked %d times", a.swaps.Load(), reads, writes, naive)
		require.Positive(t, naive, "the race was not real")
		require.Positive(t, reads)
		require.Positive(t, writes)
		a.untouched(t)
	})
}

// readThrough reads a file below the door; an error is as good as the content.
func readThrough(r disk.Root) string {
	f, err := r.Open("door/file")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	content, _ := io.ReadAll(f)
	return string(content)
}

// changeAll tries every changing operation and counts the successful ones.
func changeAll(r disk.Root) (done int) {
	create := func() error {
		f, err := r.Create("door/made", 0o666)
		if err != nil {
			return err
		}
		return f.Close()
	}
	for _, try := range []func() error{
		create,
		func() error { return r.Chmod("door/file", 0o644) },
		func() error { return r.SetMtime("door/file", time.Unix(1, 0)) },
		func() error { return r.SetXattr("door/file", "user.k", nil) },
		func() error { return r.RenameNoReplace("door/made", "door/moved") },
		create,
		func() error { return r.Exchange("door/made", "door/moved") },
		func() error { return r.Mkdir("door/dir", 0o777) },
		func() error { return r.Symlink("x", "door/link") },
		func() error { return r.Remove("door/made") },
		func() error { return r.Remove("door/moved") },
		func() error { return r.Remove("door/dir") },
		func() error { return r.Remove("door/link") },
	} {
		if try() == nil {
			done++
		}
	}
	return done
}

// naiveRead is the control: resolve, compare a prefix, open.
func (a *arena) naiveRead() string {
	resolved, err := filepath.EvalSymlinks(filepath.Join(a.root, "door"))
	if err != nil || !strings.HasPrefix(resolved, a.root) {
		return ""
	}
	content, _ := os.ReadFile(filepath.Join(a.root, "door", "file"))
	return string(content)
}

// untouched requires that nothing outside was created, changed or removed.
func (a *arena) untouched(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(a.outside)
	require.NoError(t, err)
	require.Len(t, entries, len(outsideNames()))
	for _, name := range outsideNames() {
		path := filepath.Join(a.outside, name)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "secret", string(content))
		info, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		require.Greater(t, info.ModTime().Unix(), int64(1))
		size, err := unix.Listxattr(path, nil)
		require.NoError(t, err)
		require.Zero(t, size)
	}
}
