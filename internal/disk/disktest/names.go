package disktest

import (
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
)

func links(t *testing.T, r disk.Root) {
	require.NoError(t, r.Mkdir("dir", 0o755))
	write(t, r, "dir/file", "content")
	require.NoError(t, r.Symlink("dir/file", "link"))
	require.NoError(t, r.Symlink("dir", "parent"))
	require.NoError(t, r.Symlink("../dir/file", "dir/up"))

	require.Equal(t, "content", read(t, r, "link"))
	require.Equal(t, "content", read(t, r, "parent/file"))
	require.Equal(t, "content", read(t, r, "parent/up"))
	write(t, r, "parent/new", "through the link")
	require.Equal(t, "through the link", read(t, r, "dir/new"))

	info := look(t, r, "link")
	require.Equal(t, disk.TypeLink, info.Type)
	require.Equal(t, int64(len("dir/file")), info.Size)
	for _, target := range []string{"dir/file", "../out/../of/here//", "/absolute", "\xff odd"} {
		require.NoError(t, r.Symlink(target, "stored"))
		got, err := r.Readlink("stored")
		require.NoError(t, err)
		require.Equal(t, target, got)
		require.NoError(t, r.Remove("stored"))
	}
	for _, target := range []string{"", "a\x00b"} {
		require.ErrorIs(t, r.Symlink(target, "stored"), disk.ErrPath)
	}
	require.ErrorIs(t, r.Symlink("x", "link"), fs.ErrExist)
	for _, name := range []string{"dir", "dir/file"} {
		_, err := r.Readlink(name)
		require.ErrorIs(t, err, disk.ErrType, name)
	}
	require.ErrorIs(t, r.Chmod("link", 0o600), disk.ErrType)
	linkTime(t, r)
}

// linkTime requires that a time set on a link never lands on its target.
func linkTime(t *testing.T, r disk.Root) {
	target := look(t, r, "dir/file").Mtime
	at := time.Unix(1_000_000, 0).UTC()
	if err := r.SetMtime("link", at); err == nil {
		require.Equal(t, at, look(t, r, "link").Mtime)
	} else {
		require.ErrorIs(t, err, disk.ErrUnsupported)
	}
	require.Equal(t, target, look(t, r, "dir/file").Mtime)
}

// escapes walks out of the root by every kind of link.
func escapes(t *testing.T, r disk.Root) {
	require.NoError(t, r.Mkdir("dir", 0o755))
	write(t, r, "file", "inside")
	outward := []string{"..", "dir/../..", "/", "/etc", "../../../../../../tmp", "loop"}
	for _, target := range outward {
		require.NoError(t, r.Symlink(target, "loop"))
		for _, op := range operations() {
			err := op.run(r, "loop/x")
			require.ErrorIs(t, err, disk.ErrEscape, "%s through %q", op.name, target)
		}
		require.ErrorIs(t, closing(r.Open("loop")), disk.ErrEscape, target)
		require.NoError(t, r.Remove("loop"))
	}
	require.Equal(t, "inside", read(t, r, "file"))
}

func hardLinks(t *testing.T, r disk.Root) {
	write(t, r, "file", "content")
	require.NoError(t, r.Mkdir("dir", 0o755))
	require.NoError(t, r.Symlink("file", "link"))
	require.NoError(t, r.Link("file", "dir/also"))
	require.Equal(t, "content", read(t, r, "dir/also"))
	first, second := look(t, r, "file"), look(t, r, "dir/also")
	require.Equal(t, first.Inode, second.Inode)
	require.NoError(t, r.Remove("file"))
	require.Equal(t, "content", read(t, r, "dir/also"))
	require.ErrorIs(t, r.Link("dir/also", "link"), fs.ErrExist)
	require.ErrorIs(t, r.Link("none", "other"), fs.ErrNotExist)
	require.ErrorIs(t, r.Link("dir", "other"), disk.ErrType)
	require.ErrorIs(t, r.Link("link", "other"), disk.ErrType)
	absent(t, r, "other")
}

func remove(t *testing.T, r disk.Root) {
	write(t, r, "file", "")
	require.NoError(t, r.Mkdir("dir", 0o755))
	write(t, r, "dir/file", "kept")
	require.NoError(t, r.Symlink("dir", "link"))
	require.ErrorIs(t, r.Remove("dir"), fs.ErrExist)
	require.ErrorIs(t, r.Remove("none"), fs.ErrNotExist)
	require.NoError(t, r.Remove("link"))
	require.Equal(t, "kept", read(t, r, "dir/file"))
	require.NoError(t, r.Remove("dir/file"))
	require.NoError(t, r.Remove("dir"))
	require.NoError(t, r.Remove("file"))
	require.Empty(t, names(t, r, "."))
}

// three creates one of each type and returns their descriptions.
func three(t *testing.T, r disk.Root) map[string]disk.Info {
	write(t, r, "file", "content")
	require.NoError(t, r.Mkdir("dir", 0o755))
	write(t, r, "dir/below", "deep")
	require.NoError(t, r.Symlink("nowhere", "link"))
	require.NoError(t, r.Mkdir("other", 0o755))
	write(t, r, "other/file", "else")
	kinds := map[string]disk.Info{}
	for _, name := range []string{"file", "dir", "link", "other/file"} {
		kinds[name] = look(t, r, name)
	}
	return kinds
}

func exchange(t *testing.T, r disk.Root) {
	kinds := three(t, r)
	if !r.Features().Exchange {
		require.ErrorIs(t, r.Exchange("file", "link"), disk.ErrUnsupported)
		return
	}
	for a, wasA := range kinds {
		for b, wasB := range kinds {
			require.NoError(t, r.Exchange(a, b), "%s and %s", a, b)
			require.Equal(t, wasA.Inode, look(t, r, b).Inode)
			require.Equal(t, wasB.Inode, look(t, r, a).Inode)
			require.Equal(t, wasB.Type, look(t, r, a).Type)
			require.NoError(t, r.Exchange(a, b))
		}
		require.ErrorIs(t, r.Exchange(a, "none"), fs.ErrNotExist)
		require.ErrorIs(t, r.Exchange("none", a), fs.ErrNotExist)
	}
	require.Equal(t, "content", read(t, r, "file"))
	require.Equal(t, "deep", read(t, r, "dir/below"))
	require.ErrorIs(t, r.Exchange("dir", "dir/below"), disk.ErrPath)
	require.ErrorIs(t, r.Exchange("dir/below", "dir"), disk.ErrPath)
}

func rename(t *testing.T, r disk.Root) {
	kinds := three(t, r)
	if !r.Features().NoReplace {
		require.ErrorIs(t, r.RenameNoReplace("file", "free"), disk.ErrUnsupported)
		return
	}
	for from, was := range kinds {
		for to := range kinds {
			require.ErrorIs(t, r.RenameNoReplace(from, to), fs.ErrExist, "%s to %s", from, to)
		}
		require.NoError(t, r.RenameNoReplace(from, "other/free"))
		absent(t, r, from)
		require.Equal(t, was.Inode, look(t, r, "other/free").Inode)
		require.NoError(t, r.RenameNoReplace("other/free", from))
	}
	require.ErrorIs(t, r.RenameNoReplace("none", "free"), fs.ErrNotExist)
	require.ErrorIs(t, r.RenameNoReplace("file", "no/such"), fs.ErrNotExist)
	require.ErrorIs(t, r.RenameNoReplace("dir", "dir/below/itself"), disk.ErrPath)
	require.Equal(t, "content", read(t, r, "file"))
}
