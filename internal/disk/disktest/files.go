package disktest

import (
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
)

func create(t *testing.T, r disk.Root) {
	write(t, r, "file", "content")
	require.Equal(t, "content", read(t, r, "file"))
	for _, taken := range []string{"file", "dangling", "dir"} {
		if taken == "dangling" {
			require.NoError(t, r.Symlink("nowhere", taken))
		}
		if taken == "dir" {
			require.NoError(t, r.Mkdir(taken, 0o755))
		}
		require.ErrorIs(t, closing(r.Create(taken, 0o644)), fs.ErrExist, taken)
	}
	absent(t, r, "nowhere")
	require.ErrorIs(t, closing(r.Create("no/such", 0o644)), fs.ErrNotExist)
	require.Error(t, closing(r.Create("file/below", 0o644)))
	require.ErrorIs(t, closing(r.Create("typed", fs.ModeDir|0o644)), fs.ErrInvalid)
	absent(t, r, "typed")

	f, err := r.Create("fresh", 0o600)
	require.NoError(t, err)
	_, err = f.Write([]byte("four"))
	require.NoError(t, err)
	_, err = f.Read(make([]byte, 1))
	require.Error(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	require.Equal(t, int64(4), info.Size)
	require.NoError(t, f.Close())
	require.Equal(t, look(t, r, "fresh"), info)
}

func openTypes(t *testing.T, r disk.Root) {
	write(t, r, "file", "content")
	require.NoError(t, r.Mkdir("dir", 0o755))
	require.NoError(t, r.Symlink("dir", "to-dir"))
	require.ErrorIs(t, closing(r.Open("dir")), disk.ErrType)
	require.ErrorIs(t, closing(r.Open("to-dir")), disk.ErrType)
	require.ErrorIs(t, closing(r.Open("none")), fs.ErrNotExist)
	require.Error(t, closing(r.Open("file/below")))

	f, err := r.Open("file")
	require.NoError(t, err)
	_, err = f.Write([]byte("x"))
	require.Error(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, "content", read(t, r, "file"))
}

func directories(t *testing.T, r disk.Root) {
	require.Empty(t, names(t, r, "."))
	require.NoError(t, r.Mkdir("dir", 0o750))
	require.ErrorIs(t, r.Mkdir("dir", 0o750), fs.ErrExist)
	require.ErrorIs(t, r.Mkdir("no/such", 0o750), fs.ErrNotExist)
	for _, name := range []string{"dir/b", "dir/a", "dir/B", "dir/a.b", "dir/é"} {
		write(t, r, name, name)
	}
	require.NoError(t, r.Mkdir("dir/c", 0o755))
	require.Equal(t, []string{"B", "a", "a.b", "b", "c", "é"}, names(t, r, "dir"))
	entries, err := r.ReadDir("dir")
	require.NoError(t, err)
	for _, entry := range entries {
		require.Equal(t, look(t, r, "dir/"+entry.Name), entry)
	}

	write(t, r, "file", "")
	require.NoError(t, r.Symlink("dir", "link"))
	for _, name := range []string{"file", "link"} {
		_, err := r.ReadDir(name)
		require.ErrorIs(t, err, disk.ErrType, name)
		require.ErrorIs(t, r.SyncDir(name), disk.ErrType, name)
	}
	_, err = r.ReadDir("none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, r.SyncDir("dir"))

	self := look(t, r, ".")
	require.Equal(t, ".", self.Name)
	require.Equal(t, disk.TypeDir, self.Type)
	require.True(t, r.Identity().Is(disk.Identity{Device: self.Device, Inode: self.Inode}))
}

func metadata(t *testing.T, r disk.Root) {
	write(t, r, "file", "12345")
	require.NoError(t, r.Mkdir("dir", 0o755))
	for _, name := range []string{"file", "dir"} {
		for _, perm := range []fs.FileMode{0o600, 0o777, 0o640, 0o751 | fs.ModeSticky, 0o755 | fs.ModeSetgid, 0o700} {
			require.NoError(t, r.Chmod(name, perm))
			require.Equal(t, perm, look(t, r, name).Perm)
		}
		for _, at := range []time.Time{time.Unix(1, 0), time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)} {
			require.NoError(t, r.SetMtime(name, at))
			require.Equal(t, at.UTC(), look(t, r, name).Mtime)
		}
		require.ErrorIs(t, r.Chmod(name, fs.ModeSymlink|0o644), fs.ErrInvalid)
	}
	info := look(t, r, "file")
	require.Equal(t, "file", info.Name)
	require.Equal(t, disk.TypeFile, info.Type)
	require.Equal(t, int64(5), info.Size)
	require.Equal(t, uint64(1), info.Links)
	require.NotEqual(t, info.Inode, look(t, r, "dir").Inode)
	require.ErrorIs(t, r.Chmod("none", 0o600), fs.ErrNotExist)
	require.ErrorIs(t, r.SetMtime("none", time.Unix(1, 0)), fs.ErrNotExist)

	for _, perm := range []fs.FileMode{0, 0o400, 0o666, 0o777, 0o755 | fs.ModeSetuid, 0o755 | fs.ModeSticky} {
		require.NoError(t, closing(r.Create("exact", perm)))
		require.Equal(t, perm, look(t, r, "exact").Perm)
		require.NoError(t, r.Remove("exact"))
		require.NoError(t, r.Mkdir("exact", perm))
		require.Equal(t, perm, look(t, r, "exact").Perm)
		require.NoError(t, r.Remove("exact"))
	}
}

func xattrs(t *testing.T, r disk.Root) {
	write(t, r, "file", "")
	require.NoError(t, r.Symlink("file", "link"))
	for _, key := range []string{"", "user.", "other.x", "security.selinux", "security.SMACK64", "system.x", "user.a\x00b"} {
		require.ErrorIs(t, r.SetXattr("file", key, nil), disk.ErrPath, key)
		require.ErrorIs(t, r.RemoveXattr("file", key), disk.ErrPath, key)
	}
	require.ErrorIs(t, r.SetXattr("link", "user.k", nil), disk.ErrType)
	require.ErrorIs(t, r.SetXattr("none", "user.k", nil), fs.ErrNotExist)
	attrs, err := r.Xattrs("link")
	require.NoError(t, err)
	require.Empty(t, attrs)
	if !r.Features().Xattrs {
		return
	}
	require.NoError(t, r.Mkdir("dir", 0o755))
	for _, name := range []string{"file", "dir"} {
		require.NoError(t, r.SetXattr(name, "user.b", []byte{0, 1, 2}))
		require.NoError(t, r.SetXattr(name, "user.a", nil))
		require.NoError(t, r.SetXattr(name, "user.b", []byte("again")))
		attrs, err := r.Xattrs(name)
		require.NoError(t, err)
		require.Equal(t, map[string][]byte{"user.a": {}, "user.b": []byte("again")}, attrs)
		require.NoError(t, r.RemoveXattr(name, "user.a"))
		require.ErrorIs(t, r.RemoveXattr(name, "user.a"), fs.ErrNotExist)
	}
}

// owners checks the owner of new files: the root's user, or the group of the
// folder. It also checks changes of the owner.
func owners(t *testing.T, r disk.Root) {
	me := r.Self()
	write(t, r, "file", "")
	require.NoError(t, r.Mkdir("dir", 0o755))
	require.NoError(t, r.Symlink("file", "link"))
	for _, name := range []string{"file", "dir", "link"} {
		require.Equal(t, me.Owner, look(t, r, name).Owner, name)
		require.ErrorIs(t, r.Chown(name, disk.Owner{}), disk.ErrUnsupported)
	}
	if !me.Owner.Known {
		return
	}
	require.ErrorIs(t, r.Chown("none", me.Owner), fs.ErrNotExist)
	require.NoError(t, r.Chown("file", me.Owner))
	if !me.Gives {
		require.Error(t, r.Chown("file", disk.Owner{Known: true, User: me.Owner.User + 1, Group: me.Owner.Group}))
		return
	}
	other := disk.Owner{Known: true, User: 70001, Group: 70002}
	require.NoError(t, r.Chmod("file", 0o755|fs.ModeSetuid))
	for _, name := range []string{"file", "dir", "link"} {
		require.NoError(t, r.Chown(name, other))
		require.Equal(t, other, look(t, r, name).Owner, name)
	}
	require.Equal(t, fs.FileMode(0o755), look(t, r, "file").Perm, "a file that changes hands is no longer setuid")
	require.NoError(t, r.Chmod("dir", 0o775|fs.ModeSetgid))
	write(t, r, "dir/new", "")
	require.Equal(t, disk.Owner{Known: true, User: me.Owner.User, Group: other.Group}, look(t, r, "dir/new").Owner)
}

// capabilities checks that file capabilities are lost when the owner changes.
func capabilities(t *testing.T, r disk.Root) {
	if !r.Self().Capabilities || !r.Self().Gives || !r.Features().Xattrs {
		t.Skip("this process may not give programs capabilities here")
	}
	write(t, r, "file", "")
	net := []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // net_raw, permitted and effective
	require.NoError(t, r.SetXattr("file", disk.XattrCapability, net))
	attrs, err := r.Xattrs("file")
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{disk.XattrCapability: net}, attrs)
	require.NoError(t, r.Chown("file", disk.Owner{Known: true, User: 70001, Group: 70002}))
	attrs, err = r.Xattrs("file")
	require.NoError(t, err)
	require.Empty(t, attrs)
}

func quiet(t *testing.T, r disk.Root) {
	require.NoError(t, r.Mkdir("dir", 0o755))
	require.NoError(t, r.Symlink("nowhere", "link"))
	require.NoError(t, r.TryLease("dir"))
	require.NoError(t, r.TryLease("link"))
	require.ErrorIs(t, r.TryLease("none"), fs.ErrNotExist)
	f, err := r.Create("file", 0o644)
	require.NoError(t, err)
	if !r.Features().Lease {
		require.NoError(t, f.Close())
		return
	}
	require.ErrorIs(t, r.TryLease("file"), disk.ErrBusy)
	require.NoError(t, f.Close())
	require.NoError(t, r.TryLease("file"))
	reader, err := r.Open("file")
	require.NoError(t, err)
	require.NoError(t, r.TryLease("file"))
	require.NoError(t, reader.Close())
}
