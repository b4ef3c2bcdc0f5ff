package files_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// replaced returns a function with which another process replaces a file.
func (w *testEnv) replaced(name, text string) func() {
	return func() {
		w.put("tmp", text, 0o600)
		require.NoError(w.t, os.Rename(filepath.Join(w.dir, "tmp"), filepath.Join(w.dir, name)))
	}
}

// TestNewestForeignVersionStays replaces the file before the exchange, and again
// before each reversal. The newest version is under the name in the end, and
// the one before it beside it.
func TestNewestForeignVersionStays(t *testing.T) {
	for n := 1; n <= 6; n++ {
		w := newTestEnv(t)
		if !w.root.Features().Exchange {
			t.Skip("nothing is exchanged here")
		}
		w.createFiles()
		var deeds []func()
		for i := range n {
			deeds = append(deeds, w.replaced("dir/b.txt", fmt.Sprint(theirs, " ", i)))
		}
		h := w.host()
		h.OnPoint = at("files.exchange", deeds...)
		require.ErrorIs(t, w.do(h, write("dir/b.txt")), files.ErrConflict)
		require.Equal(t, fmt.Sprint(theirs, " ", n-1), w.read("dir/b.txt"), "%d times", n)
	}
}

// TestForeignWriteNonAtomic checks that content written before the file is
// removed stays.
func TestForeignWriteNonAtomic(t *testing.T) {
	for name, do := range map[string]func(context.Context, *files.Files) error{"write": write("dir/b.txt"), "delete": swaps()["take"].do} {
		w := newTestEnv(t)
		w.createFiles()
		w.root = weakRoot{w.root}
		h := w.host()
		point := "files.mark"
		if name == "delete" {
			point = "files.rename"
		}
		h.OnPoint = at(point, w.replaced("dir/b.txt", theirs))
		require.ErrorIs(t, w.do(h, do), files.ErrConflict, name)
		require.Equal(t, theirs, w.read("dir/b.txt"), name)
	}
}

// TestForeignBitsStay changes the bits of a directory before it gets ours.
func TestForeignBitsStay(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	h := w.host()
	h.OnPoint = at("files.look", func() {}, func() { require.NoError(t, os.Chmod(filepath.Join(w.dir, "dir"), 0o711)) })
	err := w.do(h, func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "dir", 0o700) })
	require.ErrorIs(t, err, files.ErrConflict)
	info, err := os.Stat(filepath.Join(w.dir, "dir"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o711), info.Mode().Perm())
}

// TestChangedWhileItIsPlanned checks that content written after the comparison
// of the versions does not count as left by the call.
func TestChangedWhileItIsPlanned(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	changes := w.changes(func(ctx context.Context, f *files.Files) error { // too large for the check to store
		return f.Write(ctx, "dir/b.txt", bytes.Repeat([]byte("x"), journal.InlineMax+1), files.WriteOptions{})
	})
	h := w.host()
	h.OnPoint = at("files.look", func() {}, w.replaced("dir/b.txt", theirs))
	steps := w.plan(w.schemeOn(h), changes)
	require.Len(t, steps, 1)
	require.Equal(t, effect.Conflict, steps[0].Plan)
	require.Equal(t, theirs, w.read("dir/b.txt"))
}

// TestForeignLinkInPlaceOfFolder checks that the entries of a new folder are not gone
// because another process moved the folder and left a link in its place.
func TestForeignLinkInPlaceOfFolder(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	changes := w.changes(func(ctx context.Context, f *files.Files) error {
		return f.Write(ctx, "d/x", []byte("ours"), files.WriteOptions{MakeParents: true})
	})
	require.Len(t, changes, 2)
	require.NoError(t, os.Rename(filepath.Join(w.dir, "d"), filepath.Join(w.dir, "e")))
	require.NoError(t, os.Symlink("e", filepath.Join(w.dir, "d")))
	for _, step := range w.plan(w.scheme(), changes) {
		require.Equal(t, effect.Conflict, step.Plan, "%s: %s", step.Change.Resource, step.Why)
	}
	require.Equal(t, "ours", w.read("e/x"))
}

// TestForeignWriteInOurFile replaces the file before the exchange, and writes into
// ours before the reversal. Both texts are kept.
func TestForeignWriteInOurFile(t *testing.T) {
	w := newTestEnv(t)
	if !w.root.Features().Exchange {
		t.Skip("nothing is exchanged here")
	}
	w.createFiles()
	h := w.host()
	h.OnPoint = at("files.exchange", w.replaced("dir/b.txt", theirs+" 1"), func() { w.put("dir/b.txt", theirs+" 2", 0o600) })
	require.ErrorIs(t, w.do(h, write("dir/b.txt")), files.ErrConflict)
	kept := map[string]bool{}
	for _, e := range w.tree() {
		kept[e.data] = true
	}
	require.True(t, kept[theirs+" 1"] && kept[theirs+" 2"], "%v", kept)
}
