package process

import (
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/sandbox"
)

// TestWithinReach checks that only changes that an owner could make and revert
// are accepted. Overlay entries that the program did not write do not matter.
func TestWithinReach(t *testing.T) {
	dir := folder(t, "root")
	for _, name := range []string{"open/f", "open/sub/f", "shut/f", "shut/sub/f"} {
		write(t, dir+"/"+name, name)
	}
	require.NoError(t, os.Symlink("x", dir+"/shut/l"))
	require.NoError(t, os.Chmod(dir+"/shut", 0o555))
	root, err := disk.OpenRoot(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, root.Close()) }()
	is, err := root.Lstat("shut/f")
	require.NoError(t, err)
	link, err := root.Lstat("shut/l")
	require.NoError(t, err)
	file := func(name string) sandbox.OverlayEntry {
		return sandbox.OverlayEntry{Name: name, Kind: sandbox.File, Mode: 0o644}
	}
	folder := func(name string, bits fs.FileMode) sandbox.OverlayEntry {
		return sandbox.OverlayEntry{Name: name, Kind: sandbox.Folder, Mode: bits}
	}
	same := sandbox.OverlayEntry{Name: "shut/f", Kind: sandbox.File, Mode: is.Perm, Mtime: is.Mtime}
	later := same
	later.Mtime = is.Mtime.Add(time.Second)
	bits := same
	bits.Mode = 0o600
	made := folder("shut/sub", 0o755)
	made.Replaced = true
	for _, tt := range []struct {
		name string
		all  []sandbox.OverlayEntry
		want string
	}{
		{"a file", []sandbox.OverlayEntry{folder("open", 0o755), file("open/new")}, ""},
		{"a file that nobody may read", []sandbox.OverlayEntry{{Name: "open/f", Kind: sandbox.File, Mode: 0o044}}, `"open/f" with the bits 0044`},
		{"a folder that nobody may enter", []sandbox.OverlayEntry{folder("open", 0o400)}, `"open" with the bits 0400`},
		{"the root", []sandbox.OverlayEntry{folder(".", 0), file("new")}, ""},
		{"a new folder that is read-only", []sandbox.OverlayEntry{folder("n", 0o500)}, ""},
		{"and not empty", []sandbox.OverlayEntry{folder("n", 0o500), file("n/f")}, `"n/f" was written`},
		{"a file of a read-only folder", []sandbox.OverlayEntry{folder("shut", 0o555), later}, `"shut/f" was written`},
		{"that is told alone", []sandbox.OverlayEntry{bits}, `"shut/f" was written`},
		{"that was only opened", []sandbox.OverlayEntry{folder("shut", 0o555), same}, ""},
		{"a link that was only looked at", []sandbox.OverlayEntry{{Name: "shut/l", Kind: sandbox.Link, Mtime: link.Mtime}}, ""},
		{"a link", []sandbox.OverlayEntry{{Name: "shut/l", Kind: sandbox.Link}}, `"shut/l" was written`},
		{"a folder on the way", []sandbox.OverlayEntry{folder("shut", 0o555), folder("shut/sub", 0o755), file("shut/sub/f")}, ""},
		{"a folder in the place of another", []sandbox.OverlayEntry{folder("shut", 0o555), made}, `"shut/sub" was written`},
		{"a folder that is opened first", []sandbox.OverlayEntry{folder("shut", 0o755), later}, ""},
		{"a removal in it", []sandbox.OverlayEntry{folder("shut", 0o755), {Name: "shut/f", Kind: sandbox.Deleted}}, `"shut/f" was written`},
		{"a removal before it is shut", []sandbox.OverlayEntry{folder("open", 0o500), {Name: "open/f", Kind: sandbox.Deleted}}, ""},
		{"a removal of what is gone", []sandbox.OverlayEntry{folder("shut", 0o755), {Name: "shut/gone", Kind: sandbox.Deleted}}, ""},
		{"a pipe", []sandbox.OverlayEntry{folder("shut", 0o555), {Name: "shut/f", Kind: sandbox.Other}}, ""},
		{"where nothing is", []sandbox.OverlayEntry{file("gone/f")}, ""},
	} {
		err := withinReach(root, tt.all)
		if tt.want == "" {
			require.NoError(t, err, tt.name)
			continue
		}
		require.ErrorContains(t, err, tt.want, tt.name)
	}
	asUser(t, func() { require.False(t, overrides()) })
}
