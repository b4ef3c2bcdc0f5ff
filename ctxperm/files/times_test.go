package files_test

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
)

// TestTimesOfFolders checks that a folder has its previous time after the names
// in it are restored. It keeps a time that another process set.
func TestTimesOfFolders(t *testing.T) {
	old := time.Unix(1_500_000_000, 123_456_789).UTC()
	for name, do := range map[string]func(ctx context.Context, f *files.Files) error{
		"a name comes": func(ctx context.Context, f *files.Files) error {
			return f.Write(ctx, "d/new", []byte("n"), files.WriteOptions{})
		},
		"a name goes":  func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, "d/file") },
		"a name moves": func(ctx context.Context, f *files.Files) error { return f.Move(ctx, "d/file", "d/deep/file") },
		"other content": func(ctx context.Context, f *files.Files) error {
			return f.Write(ctx, "d/file", []byte("n"), files.WriteOptions{})
		},
		"a folder goes":    func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, "d/deep") },
		"a folder is made": func(ctx context.Context, f *files.Files) error { return f.Mkdir(ctx, "d/made", 0o755) },
		"one after the other": func(ctx context.Context, f *files.Files) error {
			if err := f.Delete(ctx, "d/file"); err != nil {
				return err
			}
			return f.Write(ctx, "d/new", []byte("n"), files.WriteOptions{})
		},
	} {
		for _, foreign := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", and another one comes"}[foreign], func(t *testing.T) {
				w := newTestEnv(t)
				require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "d/deep"), 0o755))
				w.put("d/file", "content", 0o644)
				w.put("d/deep/x", "x", 0o644)
				folders := []string{"d/deep", "d", "."}
				for _, dir := range folders {
					require.NoError(t, os.Chtimes(filepath.Join(w.dir, dir), time.Time{}, old))
				}
				was := w.foldersAt(folders)
				require.NoError(t, w.do(w.host(), do))
				left := w.foldersAt(folders)
				theirs := time.Unix(1_600_000_000, 0).UTC()
				if foreign {
					w.put("d/foreign", "f", 0o644)
					require.NoError(t, os.Chtimes(filepath.Join(w.dir, "d"), time.Time{}, theirs))
				}
				require.Empty(t, w.revert().NotReverted())
				for _, dir := range folders {
					is, err := os.Stat(filepath.Join(w.dir, dir))
					require.NoError(t, err)
					if foreign && dir == "d" {
						require.False(t, is.ModTime().Equal(old), "the time of d is not that of before")
						continue
					}
					require.Equal(t, old, is.ModTime().UTC(), dir)
				}
				if foreign {
					return
				}
				w.redo()
				require.Equal(t, left, w.foldersAt(folders), "after the redo")
				require.Empty(t, w.revert().NotReverted())
				require.Equal(t, was, w.foldersAt(folders), "after another revert")
				w.redo()
				require.Equal(t, left, w.foldersAt(folders), "after another redo")
			})
		}
	}
}

// foldersAt returns the times of the folders that exist.
func (w *testEnv) foldersAt(folders []string) map[string]time.Time {
	w.t.Helper()
	all := map[string]time.Time{}
	for _, dir := range folders {
		if is, err := os.Stat(filepath.Join(w.dir, dir)); err == nil {
			all[dir] = is.ModTime().UTC()
		}
	}
	return all
}

// TestTimesAfterAFailure fails a call before each of its changes. A revert
// restores the times of folders together with the changed names.
func TestTimesAfterAFailure(t *testing.T) {
	old := time.Unix(1_500_000_000, 123_456_789).UTC()
	back := 0
	for n, more := 1, true; more; n++ {
		w := newTestEnv(t)
		require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "d/deep"), 0o755))
		for _, name := range []string{"d/file", "d/more", "d/deep/x", "d/deep/y"} {
			w.put(name, name, 0o644)
		}
		folders := []string{"d/deep", "d", "."}
		for _, dir := range folders {
			require.NoError(t, os.Chtimes(filepath.Join(w.dir, dir), time.Time{}, old))
		}
		h, left := w.host(), n
		h.OnPoint = func(id string) error {
			if id != "files.rename" {
				return nil
			}
			if left--; left == 0 {
				return errProcessEnded
			}
			return nil
		}
		failed := w.do(h, func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, "d") })
		more = failed != nil
		rep := w.revert()
		require.Empty(t, rep.NotReverted(), "%+v", rep)
		for _, dir := range folders {
			changed := slices.ContainsFunc(rep.Items, func(i revert.ResourceResult) bool {
				r, err := perm.ParseResource(i.Resource)
				return err == nil && i.Outcome == effect.Restored && path.Dir(r.Path()) == dir
			})
			is, err := os.Stat(filepath.Join(w.dir, dir))
			require.NoError(t, err)
			if changed {
				back++
				require.Equal(t, old, is.ModTime().UTC(), "%q at point %d", dir, n)
			}
		}
	}
	require.Positive(t, back)
}
