package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
)

// TestOpenWithWrongFileTypes checks that an error names a wrong file in place of the
// journal or of one of its folders, and that it stays unchanged.
func TestOpenWithWrongFileTypes(t *testing.T) {
	file := func(parts ...string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(append([]string{dir}, parts...)...)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
		}
	}
	for _, tt := range []struct {
		name  string
		make  func(t *testing.T, dir string)
		sub   string
		words string
	}{
		{"below a file", file("state"), "state/journal", ""},
		{"a file", file("state"), "state", "is not a folder"},
		{"content is a file", file("blobs"), "", "is not a folder"},
		{"owners are a file", file("owners"), "", "is not a folder"},
		{"the database is a folder", file("journal.db", "x"), "", "journal.db is a folder, not a file"},
		{"the database has two names", func(t *testing.T, dir string) {
			file("other.db")(t, dir)
			require.NoError(t, os.Link(filepath.Join(dir, "other.db"), filepath.Join(dir, "journal.db")))
		}, "", map[bool]string{false: "journal.db has a second name, a hard link"}[runtime.GOOS == "windows"]},
		{"the database is a link", func(t *testing.T, dir string) {
			file("other.db")(t, dir)
			require.NoError(t, os.Symlink("other.db", filepath.Join(dir, "journal.db")))
		}, "", "journal.db is a link or something else, not a file"},
		{"what is unfinished is a file", file("blobs", "new"), "", "is not a folder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("other words, and links that need a right")
			}
			dir := t.TempDir()
			require.NoError(t, os.Chmod(dir, 0o700))
			tt.make(t, dir)
			before := listed(t, dir)
			for _, try := range []func() error{
				func() error { _, err := sqlite.Open(t.Context(), filepath.Join(dir, tt.sub)); return err },
				func() error {
					_, err := sqlite.Fsck(t.Context(), filepath.Join(dir, tt.sub), revert.FsckOptions{})
					return err
				},
			} {
				err := try()
				require.Error(t, err)
				require.ErrorContains(t, err, filepath.Join(dir, tt.sub))
			}
			_, err := sqlite.Open(t.Context(), filepath.Join(dir, tt.sub))
			require.ErrorContains(t, err, tt.words)
			for path, content := range before {
				require.Equal(t, content, listed(t, dir)[path], path)
			}
		})
	}
}

// listed returns the content of all files below a folder.
func listed(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		return err
	}))
	return all
}

// TestContentPathIsBlocked checks that a file or a folder in place of
// content is not content. A failed store leaves nothing behind.
func TestContentPathIsBlocked(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("other words")
	}
	dir := t.TempDir()
	j := open(t, dir)
	defer func() { require.NoError(t, j.Close()) }()
	ref := keepLarge(t, j, 0)
	path := blobFile(dir, ref)
	again := func() error {
		_, err := j.StoreContent(t.Context(), bytes.NewReader(make([]byte, journal.InlineMax+1)))
		return err
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.MkdirAll(filepath.Join(path, "x"), 0o700))
	require.ErrorContains(t, again(), "keep")
	content, err := j.OpenContent(t.Context(), ref)
	if err == nil { // a folder opens, and cannot be read
		_, err = content.Read(make([]byte, 1))
		require.NoError(t, content.Close())
	}
	require.ErrorContains(t, err, ref.Digest)
	require.ErrorContains(t, j.Append(t.Context(), journal.Batch{Blobs: []journal.Blob{journal.StoredBlob(ref)}}), ref.Digest)
	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	require.NoError(t, os.WriteFile(filepath.Dir(path), nil, 0o600))
	require.ErrorContains(t, again(), "keep")
	_, err = j.OpenContent(t.Context(), ref)
	require.ErrorContains(t, err, ref.Digest)
	require.Error(t, j.Append(t.Context(), journal.Batch{Blobs: []journal.Blob{journal.StoredBlob(ref)}}))
	_, err = j.CollectGarbage(t.Context(), nil)
	require.ErrorContains(t, err, filepath.Dir(path))
	_, err = sqlite.Fsck(t.Context(), dir, revert.FsckOptions{})
	require.Error(t, err)
	left, err := os.ReadDir(filepath.Join(dir, "blobs", "new"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, os.Remove(filepath.Dir(path)))
	require.NoError(t, again(), "nothing of it lasts")

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "blobs", "new")))
	require.ErrorIs(t, again(), os.ErrNotExist)
	_, err = j.StoreContent(t.Context(), strings.NewReader("x"))
	require.NoError(t, err, "what is small needs no file")
}
