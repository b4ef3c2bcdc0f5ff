package disktest

import (
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
)

// operation is one method applied to one name.
type operation struct {
	name string
	self bool // also acts on "."
	run  func(r disk.Root, name string) error
}

// operations lists every method that takes a name.
func operations() []operation {
	return []operation{
		{"Open", false, func(r disk.Root, name string) error { return closing(r.Open(name)) }},
		{"Create", false, func(r disk.Root, name string) error { return closing(r.Create(name, 0o600)) }},
		{"Lstat", true, func(r disk.Root, name string) error { _, err := r.Lstat(name); return err }},
		{"ReadDir", true, func(r disk.Root, name string) error { _, err := r.ReadDir(name); return err }},
		{"Readlink", false, func(r disk.Root, name string) error { _, err := r.Readlink(name); return err }},
		{"Symlink", false, func(r disk.Root, name string) error { return r.Symlink("target", name) }},
		{"Mkdir", false, func(r disk.Root, name string) error { return r.Mkdir(name, 0o700) }},
		{"Chmod", true, func(r disk.Root, name string) error { return r.Chmod(name, 0o700) }},
		{"Chown", true, func(r disk.Root, name string) error { return r.Chown(name, disk.Owner{Known: true, User: 1, Group: 1}) }},
		{"SetMtime", true, func(r disk.Root, name string) error { return r.SetMtime(name, time.Unix(1, 0)) }},
		{"Xattrs", true, func(r disk.Root, name string) error { _, err := r.Xattrs(name); return err }},
		{"SetXattr", true, func(r disk.Root, name string) error { return r.SetXattr(name, "user.k", nil) }},
		{"RemoveXattr", true, func(r disk.Root, name string) error { return r.RemoveXattr(name, "user.k") }},
		{"Remove", false, func(r disk.Root, name string) error { return r.Remove(name) }},
		{"Exchange from", false, func(r disk.Root, name string) error { return r.Exchange(name, "file") }},
		{"Exchange to", false, func(r disk.Root, name string) error { return r.Exchange("file", name) }},
		{"Rename from", false, func(r disk.Root, name string) error { return r.RenameNoReplace(name, "free") }},
		{"Rename to", false, func(r disk.Root, name string) error { return r.RenameNoReplace("file", name) }},
		{"Link from", false, func(r disk.Root, name string) error { return r.Link(name, "free") }},
		{"Link to", false, func(r disk.Root, name string) error { return r.Link("file", name) }},
		{"SyncDir", true, func(r disk.Root, name string) error { return r.SyncDir(name) }},
		{"Quiet", true, func(r disk.Root, name string) error { return r.TryLease(name) }},
	}
}

func closing(f disk.File, err error) error {
	if err != nil {
		return err
	}
	return f.Close()
}

// paths tries every ill-formed name on every method.
func paths(t *testing.T, r disk.Root) {
	write(t, r, "file", "kept")
	bad := []string{
		"", "/", "/file", "..", "../file", "a/..", "a/../file", "./file", "a/./b", "file/", "a//b",
		"file\x00", "\x00",
	}
	for _, op := range operations() {
		for _, name := range bad {
			require.ErrorIs(t, op.run(r, name), disk.ErrPath, "%s of %q", op.name, name)
		}
		if op.self {
			require.NotErrorIs(t, op.run(r, "."), disk.ErrPath, op.name)
		} else {
			require.Error(t, op.run(r, "."), op.name)
		}
	}
	require.Equal(t, []string{"file"}, names(t, r, "."))
	require.Equal(t, "kept", read(t, r, "file"))
}

// closed requires that the root's authority ends with Close, and that an open
// file remains usable.
func closed(t *testing.T, r disk.Root) {
	write(t, r, "file", "kept")
	f, err := r.Open("file")
	require.NoError(t, err)
	require.NoError(t, r.Close())
	for _, op := range operations() {
		require.ErrorIs(t, op.run(r, "name"), fs.ErrClosed, op.name)
	}
	buf := make([]byte, 4)
	_, err = f.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "kept", string(buf))
	require.NoError(t, f.Close())
	require.ErrorIs(t, f.Close(), fs.ErrClosed)
	_, err = f.Read(buf)
	require.ErrorIs(t, err, fs.ErrClosed)
}
