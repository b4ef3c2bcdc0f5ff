//go:build linux && !portable

package disk_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
)

// TestClosedViewReachesNoOtherFolder closes a view while another goroutine uses
// it. Each use acts on the pinned folder, or fails: never on a folder that got
// the descriptor's number after it.
func TestClosedViewReachesNoOtherFolder(t *testing.T) {
	dir := t.TempDir()
	r := disk.WithoutLinks(open(t, dir))
	p, ok := r.(disk.FolderPinner)
	if !ok || !r.Features().Straight {
		t.Skip("this system has no such view")
	}
	require.NoError(t, r.Mkdir("a", 0o755))
	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "f"), nil, 0o644))
	for range 3_000 {
		view, err := p.PinFolder("a")
		require.NoError(t, err)
		var using sync.WaitGroup
		using.Go(func() {
			for {
				_, err := view.Lstat("a/f")
				if err == nil {
					t.Error("a file of another folder")
					return
				}
				if !os.IsNotExist(err) {
					require.ErrorIs(t, err, fs.ErrClosed)
					return
				}
			}
		})
		require.NoError(t, view.Close())
		f, err := os.Open(other)
		require.NoError(t, err)
		using.Wait()
		require.NoError(t, f.Close())
	}
}

// TestClosedFileReadsNoOther closes a file while another goroutine reads it. No
// read returns the bytes of the file that got its descriptor's number.
func TestClosedFileReadsNoOther(t *testing.T) {
	dir := t.TempDir()
	r := disk.WithoutLinks(open(t, dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o644))
	other := filepath.Join(t.TempDir(), "o")
	require.NoError(t, os.WriteFile(other, []byte("other"), 0o644))
	for i := range 3_000 {
		f, err := r.Open("f")
		require.NoError(t, err)
		bad := false
		var using sync.WaitGroup
		using.Go(func() {
			var buf [8]byte
			for {
				n, err := f.Read(buf[:])
				if n > 0 {
					bad = true
					return
				}
				if errors.Is(err, fs.ErrClosed) {
					return
				}
				if !errors.Is(err, io.EOF) {
					t.Errorf("round %d: %v", i, err)
					return
				}
			}
		})
		if i%2 == 0 {
			runtime.Gosched()
		}
		require.NoError(t, f.Close())
		o, err := os.Open(other)
		require.NoError(t, err)
		using.Wait()
		require.NoError(t, o.Close())
		if bad {
			t.Fatalf("round %d: read the bytes of another file", i)
		}
	}
}
