package files_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
)

// swappedDir is a directory that a goroutine swaps, as fast as possible, with a link
// to another directory below the same root. No access permits that directory.
type swappedDir struct {
	w     *testEnv
	stop  atomic.Bool
	swaps atomic.Int64
	done  sync.WaitGroup
}

func newSwappedDir(w *testEnv) *swappedDir {
	d := &swappedDir{w: w}
	for _, dir := range []string{"door", "vault"} {
		require.NoError(w.t, os.Mkdir(filepath.Join(w.dir, dir), 0o755))
		for _, name := range []string{"file", "made"} {
			w.put(dir+"/"+name, dir, 0o640)
		}
	}
	require.NoError(w.t, os.Symlink("vault", filepath.Join(w.dir, "trap")))
	front, trap := filepath.Join(w.dir, "door"), filepath.Join(w.dir, "trap")
	d.done.Go(func() {
		for !d.stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, front, unix.AT_FDCWD, trap, unix.RENAME_EXCHANGE)
			d.swaps.Add(1)
		}
	})
	return d
}

func (d *swappedDir) end() {
	d.stop.Store(true)
	d.done.Wait()
}

// leaks reports whether the root follows the link, as a control. It does so
// without Straight, so the race is real.
func (d *swappedDir) leaks() bool {
	f, err := d.w.root.Open("door/file")
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	data, _ := io.ReadAll(f)
	return string(data) == "vault"
}

// TestNoAccessThroughSwappedDir checks that an operation affects only its
// permitted path. It affects no other path, even if another process replaces
// the directory between check and use.
func TestNoAccessThroughSwappedDir(t *testing.T) {
	w := newTestEnv(t)
	if !w.root.Features().Beneath {
		t.Skip("this kernel cannot refuse links while it walks")
	}
	d := newSwappedDir(w)
	defer d.end()
	vault := func() map[string]entry { return w.below("vault") } // without the entries that change beside it
	before := vault()
	require.Len(t, before, 2)
	acts := []func(context.Context, *files.Files) error{
		func(ctx context.Context, f *files.Files) error {
			data, err := f.ReadFile(ctx, "door/file")
			require.NotEqual(t, "vault", string(data))
			return err
		},
		func(ctx context.Context, f *files.Files) error {
			return f.Write(ctx, "door/file", []byte("new"), files.WriteOptions{})
		},
		func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "door/file", 0o600) },
		func(ctx context.Context, f *files.Files) error { return f.Append(ctx, "door/file", []byte("more")) },
		func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, "door/made") },
		func(ctx context.Context, f *files.Files) error {
			return f.Write(ctx, "door/made", []byte("again"), files.WriteOptions{})
		},
	}
	h := w.host()
	w.begin(h)
	leaked, done := 0, 0
	for i := 0; i < 1200 || (leaked == 0 || done == 0) && i < 100_000; i++ {
		if d.leaks() {
			leaked++
		}
		call := w.call(h)
		if acts[i%len(acts)](t.Context(), w.files(call)) == nil {
			done++
		}
		require.NoError(t, call.Close(t.Context()))
	}
	d.end()
	t.Logf("%d swaps, %d operations went through, the control leaked %d times", d.swaps.Load(), done, leaked)
	require.Positive(t, leaked, "the race was not real")
	require.Positive(t, done)
	require.Equal(t, before, vault())
}

// TestStraight checks that the view follows no link, that its root does, and
// that both are one root.
func TestStraight(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	require.NoError(t, os.Symlink("dir", filepath.Join(w.dir, "alias")))
	straight := disk.WithoutLinks(w.root)
	require.Equal(t, w.root.Identity(), straight.Identity())
	require.Same(t, straight, disk.WithoutLinks(w.root))
	require.Equal(t, straight, disk.WithoutLinks(straight))
	_, err := w.root.Lstat("alias/b.txt")
	require.NoError(t, err)
	if w.root.Features().Beneath {
		_, err = straight.Lstat("alias/b.txt")
		require.ErrorIs(t, err, disk.ErrEscape)
	}
	info, err := straight.Lstat("alias")
	require.NoError(t, err)
	require.Equal(t, disk.TypeLink, info.Type)
}
