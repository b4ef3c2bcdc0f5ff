package disk_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/disk/disktest"
)

func TestRealRootConforms(t *testing.T) {
	disktest.Run(t, func(t *testing.T) disk.Root { return open(t, t.TempDir()) })
}

// open opens a root that is closed when the test ends.
func open(t *testing.T, dir string) disk.Root {
	t.Helper()
	r, err := disk.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestOpenRootNeedsADirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, path := range []string{file, filepath.Join(dir, "none")} {
		_, err := disk.OpenRoot(path)
		require.Error(t, err, path)
	}
}

func TestIdentityTellsFoldersApart(t *testing.T) {
	dir := t.TempDir()
	old, folder := filepath.Join(dir, "old"), filepath.Join(dir, "folder")
	require.NoError(t, os.Mkdir(folder, 0o700))
	first := open(t, folder).Identity()
	require.Equal(t, first, open(t, folder).Identity())

	require.NoError(t, os.Rename(folder, old))
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NotEqual(t, first, open(t, folder).Identity())
	require.Equal(t, first, open(t, old).Identity())

	text, err := json.Marshal(first)
	require.NoError(t, err)
	var again disk.Identity
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, first, again)
}

func TestErrorsNameNoHostPath(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	require.NoError(t, r.Symlink("/etc", "out"))
	f, err := r.Create("file", 0o600)
	require.NoError(t, err)
	_, reading := f.Read(make([]byte, 1))
	require.NoError(t, f.Close())
	_, missing := r.Open("none")
	_, escaping := r.Open("out/passwd")
	for _, err := range []error{reading, missing, escaping, f.Close(), r.Mkdir("no/such", 0o700)} {
		require.Error(t, err)
		require.NotContains(t, err.Error(), dir)
	}
}

func TestTypeString(t *testing.T) {
	words := []string{}
	for kind := range disk.TypeOther + 1 {
		words = append(words, kind.String())
	}
	require.Equal(t, []string{"unknown", "file", "dir", "link", "other"}, words)
}

func TestPathFollowsTheFolder(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	folder, link := filepath.Join(base, "folder"), filepath.Join(base, "link")
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, os.Symlink(folder, link))
	r := open(t, link)
	path, err := r.Path()
	require.NoError(t, err)
	require.Equal(t, folder, path)
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Remove(folder))
	_, err = r.Path()
	require.Error(t, err, "it is gone")
}
