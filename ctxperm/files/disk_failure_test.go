package files_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
)

var errDisk = errors.New("the disk gives up")

// TestDiskFailure fails the disk from some point on. The process lives and its
// journal works, so the call ends. After the disk works again, a revert of the
// call settles everything.
func TestDiskFailure(t *testing.T) {
	each(t, func(t *testing.T, a action, fresh func() *testEnv) {
		for n, more := 1, true; more; n++ {
			w := fresh()
			before := w.tree()
			left := n
			more = false
			h := w.host()
			h.OnPoint = func(id string) error {
				if strings.HasPrefix(id, "files.") {
					if left--; left <= 0 {
						more = true
						return errDisk
					}
				}
				return nil
			}
			err := w.do(h, a.do)
			require.Equal(t, more, err != nil)
			if more {
				require.ErrorIs(t, err, errDisk)
				require.NotErrorIs(t, err, files.ErrConflict)
			}
			require.Empty(t, w.revert().NotReverted())
			require.Equal(t, before, w.tree())
		}
	})
}

// TestSingleFailure fails a single step. The operation cleans up after itself,
// and the file has its previous version. If only the last sync failed, it has
// its new one.
func TestSingleFailure(t *testing.T) {
	each(t, func(t *testing.T, a action, fresh func() *testEnv) {
		for n, more := 1, true; more; n++ {
			w := fresh()
			left := n
			more = false
			h := w.host()
			h.OnPoint = func(id string) error {
				if strings.HasPrefix(id, "files.") {
					if left--; left == 0 {
						more = true
						return errDisk
					}
				}
				return nil
			}
			_ = w.do(h, a.do)
			for name := range w.tree() {
				require.NotContains(t, name, files.StagePrefix)
			}
		}
	})
}

// at runs one function at the first pass of a point, and another at the second.
func at(id string, deeds ...func()) func(string) error {
	return func(passed string) error {
		if passed == id && len(deeds) > 0 {
			deed := deeds[0]
			deeds = deeds[1:]
			deed()
		}
		return nil
	}
}

// TestCopyOfOurs replaces the file before the exchange. Before the exchange is
// reversed, it replaces our file with a copy of it. The copy belongs to the
// other process, and is the newest version.
func TestCopyOfOurs(t *testing.T) {
	w := newTestEnv(t)
	if !w.root.Features().Exchange {
		t.Skip("nothing is exchanged here")
	}
	w.createFiles()
	replace := func(text string) func() {
		return func() {
			w.put("tmp", text, 0o640)
			require.NoError(t, os.Rename(filepath.Join(w.dir, "tmp"), filepath.Join(w.dir, "a.txt")))
			if w.root.Features().Xattrs {
				setXattr(t, filepath.Join(w.dir, "a.txt"), "user.note", "kept")
			}
		}
	}
	h := w.host()
	h.OnPoint = at("files.exchange", replace(theirs), replace("ours"))
	err := w.do(h, func(ctx context.Context, f *files.Files) error {
		return f.Write(ctx, "a.txt", []byte("ours"), files.WriteOptions{})
	})
	require.ErrorIs(t, err, files.ErrConflict)
	require.ErrorContains(t, err, "remit-saved")
	require.Equal(t, "ours", w.read("a.txt"))
	require.True(t, w.wrote())
	w.revert()
	require.Equal(t, "ours", w.read("a.txt"), "a conflict has no effect that could be reverted")
}

// TestFilledWhileDeleted fills an empty directory while it is removed.
func TestFilledWhileDeleted(t *testing.T) {
	w := newTestEnv(t)
	if !w.root.Features().NoReplace {
		t.Skip("nothing is renamed here")
	}
	w.createFiles()
	h := w.host()
	h.OnPoint = at("files.rename", func() { w.put("dir/empty/theirs", theirs, 0o600) })
	err := w.do(h, func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, "dir/empty") })
	require.ErrorIs(t, err, files.ErrConflict)
	require.ErrorContains(t, err, "not empty")
	require.Equal(t, theirs, w.read("dir/empty/theirs"))
}
