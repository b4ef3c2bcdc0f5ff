package watch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/watch"
)

// TestPruneApart checks that a file which somebody has mapped is among the
// opened ones in each answer: before, while and after the others are dropped.
func TestPruneApart(t *testing.T) {
	dir := t.TempDir()
	const files = 400
	name := func(i int) string { return fmt.Sprint("f", i) }
	for i := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name(i)), []byte("text"), 0o600))
	}
	tree, err := watch.New(dir)
	require.NoError(t, err)
	defer tree.Close()
	f, err := os.OpenFile(filepath.Join(dir, name(0)), os.O_RDWR, 0)
	require.NoError(t, err)
	mapped, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	defer func() { require.NoError(t, unix.Munmap(mapped)) }()
	for i := range files {
		f, err := os.Open(filepath.Join(dir, name(i)))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	for round := 0; ; round++ {
		d := watch.Dirty{Names: map[string]bool{}, Opened: map[string]bool{}, Links: map[uint64]bool{}}
		require.NoError(t, tree.Drain(&d))
		require.Contains(t, d.Opened, name(0))
		if round == 0 {
			require.Len(t, d.Opened, files)
		}
		if len(d.Opened) < files/10 {
			break
		}
		runtime.Gosched()
	}
	late, err := os.OpenFile(filepath.Join(dir, name(1)), os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, late.Close()) }()
	d := watch.Dirty{Names: map[string]bool{}, Opened: map[string]bool{}, Links: map[uint64]bool{}}
	require.NoError(t, tree.Drain(&d))
	require.Contains(t, d.Opened, name(1))
}
