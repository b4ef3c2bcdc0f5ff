//go:build linux && !portable

package disk_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/disk/disktest"
)

// pin pins a folder of a root until the test ends.
func pin(t *testing.T, r disk.Root, name string) disk.Root {
	t.Helper()
	p, ok := r.(disk.FolderPinner)
	require.True(t, ok)
	view, err := p.PinFolder(name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = view.Close() })
	return view
}

func TestPinnedFolderConforms(t *testing.T) {
	disktest.Run(t, func(t *testing.T) disk.Root { return pin(t, open(t, t.TempDir()), ".") })
}

// TestPinnedFolderMoves checks that the view stays with its directory, and that
// all other names are those of the root.
func TestPinnedFolderMoves(t *testing.T) {
	dir := t.TempDir()
	r := disk.WithoutLinks(open(t, dir))
	require.NoError(t, r.Mkdir("a", 0o755))
	require.NoError(t, r.Mkdir("a/in", 0o755))
	view := pin(t, r, "a")
	require.NoError(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	require.NoError(t, os.Symlink("b", filepath.Join(dir, "a")))

	_, err := r.Lstat("a/in")
	require.ErrorIs(t, err, disk.ErrEscape, "the root walks")
	for _, name := range []string{"a", "a/in", "b/in", "."} {
		info, err := view.Lstat(name)
		require.NoError(t, err, name)
		require.Equal(t, disk.TypeDir, info.Type, name)
		require.Equal(t, filepath.Base(name), info.Name)
	}
	_, err = view.Lstat("a/in/x")
	require.ErrorIs(t, err, disk.ErrEscape, "what is deeper is walked from the root")
	f, err := view.Create("a/file", 0o600)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, view.SyncDir("a"))
	require.NoError(t, view.RenameNoReplace("a/file", "file"))
	require.FileExists(t, filepath.Join(dir, "file"))

	require.NoError(t, view.Close())
	_, err = view.Lstat("a/in")
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, view.Close(), fs.ErrClosed)
	_, err = r.Lstat("b")
	require.NoError(t, err, "the root stays open")
}

// TestPinRefuses checks what is no folder of the root.
func TestPinRefuses(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	p, ok := disk.WithoutLinks(open(t, dir)).(disk.FolderPinner)
	require.True(t, ok)
	for _, name := range []string{"link", "file", "none", "../x", ""} {
		_, err := p.PinFolder(name)
		require.Error(t, err, name)
	}
	old, ok := openOld(t, dir).(disk.FolderPinner)
	require.True(t, ok)
	_, err := old.PinFolder("real")
	require.ErrorIs(t, err, disk.ErrUnsupported)
	top, ok := open(t, "/").(disk.FolderPinner)
	require.True(t, ok)
	_, err = top.PinFolder("proc")
	require.ErrorIs(t, err, disk.ErrEscape)
}

// TestPinnedFolderRefusesMounts checks that one step from an open directory
// reaches no other mount.
func TestPinnedFolderRefusesMounts(t *testing.T) {
	r := open(t, "/")
	for _, view := range []disk.Root{r, pin(t, r, ".")} {
		_, err := view.Lstat("proc")
		require.ErrorIs(t, err, disk.ErrEscape)
		_, err = view.ReadDir("proc")
		require.ErrorIs(t, err, disk.ErrEscape)
		require.ErrorIs(t, view.Chmod("proc", 0o700), disk.ErrEscape)
		require.ErrorIs(t, view.SyncDir("proc"), disk.ErrEscape)
	}
}

// TestMetadataOfAnOpenFile checks that it belongs to the inode, not to the name.
func TestMetadataOfAnOpenFile(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	f, err := r.Create("file", 0o600)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	require.NoError(t, r.RenameNoReplace("file", "moved"))
	other, err := r.Create("file", 0o600)
	require.NoError(t, err)
	require.NoError(t, other.Close())
	own, ok := f.(disk.OpenMetadata)
	require.True(t, ok)

	was, err := r.Lstat("moved")
	require.NoError(t, err)
	require.NoError(t, own.Chmod(0o640))
	require.NoError(t, own.SetMtime(was.Mtime.AddDate(-1, 0, 0)))
	require.NoError(t, own.Chown(was.Owner))
	require.ErrorIs(t, own.Chown(disk.Owner{}), disk.ErrUnsupported)
	require.ErrorIs(t, own.Chmod(fs.ModeDir), fs.ErrInvalid)
	require.ErrorIs(t, own.SetXattr("other.k", nil), disk.ErrPath)
	require.ErrorIs(t, own.RemoveXattr("other.k"), disk.ErrPath)
	if r.Features().Xattrs {
		require.NoError(t, own.SetXattr("user.a", []byte("1")))
		require.NoError(t, own.SetXattr("user.b", []byte("2")))
		require.NoError(t, own.RemoveXattr("user.a"))
		require.ErrorIs(t, own.RemoveXattr("user.a"), fs.ErrNotExist)
		attrs, err := own.Xattrs()
		require.NoError(t, err)
		require.Equal(t, map[string][]byte{"user.b": []byte("2")}, attrs)
	}
	is, err := r.Lstat("moved")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), is.Perm)
	require.Equal(t, was.Mtime.AddDate(-1, 0, 0), is.Mtime)
	is, err = r.Lstat("file")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), is.Perm)

	reader, err := r.Open("moved")
	require.NoError(t, err)
	defer func() { _ = reader.Close() }()
	own, ok = reader.(disk.OpenMetadata)
	require.True(t, ok)
	if r.Features().Lease {
		require.ErrorIs(t, own.TryLease(), disk.ErrBusy, "f is open for writing")
		require.NoError(t, f.Close())
		require.NoError(t, own.TryLease())
	}
}

// TestReopen checks that only the described file is opened.
func TestReopen(t *testing.T) {
	eachWalker(t, func(t *testing.T, open func(*testing.T, string) disk.Root) {
		dir := t.TempDir()
		r := open(t, dir)
		again, ok := r.(disk.Reopener)
		require.True(t, ok)
		path := filepath.Join(dir, "file")
		require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
		was, err := r.Lstat("file")
		require.NoError(t, err)
		f, err := again.Reopen("file", was)
		require.NoError(t, err)
		require.NoError(t, f.Close())

		longer, touched := was, was
		longer.Size++
		touched.Mtime = was.Mtime.Add(1)
		for _, other := range []disk.Info{longer, touched} {
			_, err = again.Reopen("file", other)
			require.ErrorIs(t, err, disk.ErrBusy)
		}
		require.NoError(t, os.Rename(path, path+"2"))
		_, err = again.Reopen("file", was)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
		require.NoError(t, os.Chtimes(path, was.Mtime, was.Mtime))
		_, err = again.Reopen("file", was)
		require.ErrorIs(t, err, disk.ErrBusy, "another file has its name, size and time")
		require.NoError(t, os.Remove(path))
		require.NoError(t, unix.Mkfifo(path, 0o600))
		_, err = again.Reopen("file", was)
		require.ErrorIs(t, err, disk.ErrBusy)
		_, err = again.Reopen("../x", was)
		require.ErrorIs(t, err, disk.ErrPath)
		info, err := r.Lstat("file")
		require.NoError(t, err)
		_, err = again.Reopen("file", info)
		require.ErrorIs(t, err, disk.ErrType)
	})
}

// TestReopenFollowsNoLink checks a link to the described file in its place.
func TestReopenFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	was, err := r.Lstat("file")
	require.NoError(t, err)
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "link")))
	reopener, ok := r.(disk.Reopener)
	require.True(t, ok)
	_, err = reopener.Reopen("link", was)
	require.ErrorIs(t, err, disk.ErrEscape)
}
