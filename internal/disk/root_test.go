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

func TestIdentityDistinguishesFolders(t *testing.T) {
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

// TestIdentityOfAReusedInode checks folders that get the inode number
// of a deleted one.
func TestIdentityOfAReusedInode(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	seen := map[uint64]disk.Identity{}
	for range 64 {
		require.NoError(t, os.Mkdir(folder, 0o700))
		r, err := disk.OpenRoot(folder)
		require.NoError(t, err)
		id := r.Identity()
		require.NoError(t, r.Close())
		require.NoError(t, os.Remove(folder))
		if id.Created == 0 {
			t.Skip("this file system does not tell when a folder was made")
		}
		if first, again := seen[id.Inode]; again {
			require.False(t, first.Is(id), "%+v and %+v", first, id)
			require.False(t, first.IsAgain(id))
			return
		}
		seen[id.Inode] = id
	}
	t.Skip("this file system used no number again")
}

func TestIdentityAcrossRestarts(t *testing.T) {
	id := disk.Identity{Device: 1, Inode: 2, Created: 3}
	for _, tc := range []struct {
		other     disk.Identity
		is, again bool
	}{
		{disk.Identity{Device: 1, Inode: 2, Created: 3}, true, true},
		{disk.Identity{Device: 1, Inode: 2}, true, true}, // unknown
		{disk.Identity{Device: 9, Inode: 2, Created: 3}, false, true},
		{disk.Identity{Device: 9, Inode: 2}, false, false},
		{disk.Identity{Device: 1, Inode: 2, Created: 4}, false, false},
		{disk.Identity{Device: 1, Inode: 9, Created: 3}, false, false},
		{disk.Identity{Device: 9, Inode: 2, Created: 4}, false, false},
		{disk.Identity{}, false, false},
	} {
		require.Equal(t, tc.is, id.Is(tc.other), "%+v", tc.other)
		require.Equal(t, tc.is, tc.other.Is(id), "%+v", tc.other)
		require.Equal(t, tc.again, id.IsAgain(tc.other), "%+v", tc.other)
		require.Equal(t, tc.again, tc.other.IsAgain(id), "%+v", tc.other)
	}
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
