package files_test

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/effect"
)

func contentOf(t *testing.T) func(r io.ReadCloser, err error) string {
	return func(r io.ReadCloser, err error) string {
		t.Helper()
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		return string(data)
	}
}

// TestView checks that a verifier sees the resources of the call, now and
// before the first change, and nothing else.
func TestView(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	changes := w.changes(func(ctx context.Context, f *files.Files) error {
		for _, text := range []string{"1", "2"} {
			if err := f.Write(ctx, "a.txt", []byte(text), files.WriteOptions{}); err != nil {
				return err
			}
		}
		if err := f.Delete(ctx, "link"); err != nil {
			return err
		}
		return f.Write(ctx, "new.txt", []byte("new"), files.WriteOptions{})
	})
	world := fileInternals.View(func(string) (disk.Root, bool) { return w.root, true }, w.host(), w.journal,
		[]string{"file://workspace/run.sh", "file://workspace/none", "file://workspace/dir"}, changes)
	ctx, content := t.Context(), contentOf(t)

	require.Equal(t, "2", content(world.Open(ctx, "file://workspace/a.txt")))
	require.Equal(t, "one\ntwo\nthree\n", content(world.Before(ctx, "file://workspace/a.txt")))
	require.Equal(t, "#!/bin/sh\n", content(world.Open(ctx, "file://workspace/run.sh")))
	version, err := world.Version(ctx, "file://workspace/a.txt")
	require.NoError(t, err)
	require.Equal(t, string(changes[1].Post), version)
	for _, absent := range []string{"none", "link"} {
		version, err = world.Version(ctx, "file://workspace/"+absent)
		require.NoError(t, err)
		require.Equal(t, string(effect.Absent), version)
		_, err = world.Open(ctx, "file://workspace/"+absent)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	for _, none := range []string{"new.txt", "run.sh", "link"} {
		_, err = world.Before(ctx, "file://workspace/"+none)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	_, err = world.Open(ctx, "file://workspace/dir")
	require.ErrorIs(t, err, disk.ErrType)
	_, err = world.Open(ctx, "file://workspace/long.txt")
	require.ErrorIs(t, err, ctxperm.ErrDenied)
	_, err = world.Version(ctx, "file://workspace/long.txt")
	require.ErrorIs(t, err, ctxperm.ErrDenied)

	require.NoError(t, os.Remove(filepath.Join(w.dir, "a.txt")))
	require.NoError(t, os.Symlink("long.txt", filepath.Join(w.dir, "a.txt")))
	_, err = world.Open(ctx, "file://workspace/a.txt")
	require.ErrorIs(t, err, disk.ErrType, "a link would show another file")
}
