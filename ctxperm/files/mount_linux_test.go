package files_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
)

// TestMounts checks that a mount below a root does not belong to the root. It
// appears as a directory, and walks and searches skip its content. No operation
// enters it, or removes a directory that contains it.
func TestMounts(t *testing.T) {
	const inside = "REMIT_TEST_MOUNTS"
	if os.Getenv(inside) == "" {
		again := exec.Command(os.Args[0], "-test.run=^TestMounts$", "-test.count=1")
		again.Env = append(os.Environ(), inside+"=1")
		again.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := again.CombinedOutput()
		if ran := new(exec.ExitError); err != nil && !errors.As(err, &ran) {
			t.Skip("no mount namespace of our own: ", err)
		}
		require.NoError(t, err, "%s", out)
		return
	}
	w := newTestEnv(t)
	w.createFiles()
	at := filepath.Join(w.dir, "dir/empty")
	if err := unix.Mount("none", at, "tmpfs", 0, ""); err != nil {
		t.Skip("nothing can be mounted: ", err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(at, "theirs"), []byte("needle"), 0o600))
	before := w.tree()
	f := w.files(w.begin(w.host()))

	walk, err := f.Walk(t.Context(), ".", 1)
	require.NoError(t, err)
	var seen []string
	for _, e := range walk.Items {
		seen = append(seen, e.Path)
	}
	require.Equal(t, []string{"a.txt", "dir", "dir/b.txt", "dir/empty", "link", "long.txt", "run.sh"}, seen)
	found, err := f.Search(t.Context(), ".", files.Query{Pattern: "needle", Page: 1})
	require.NoError(t, err)
	require.Empty(t, found.Items)

	for _, path := range []string{"dir/empty/theirs", "dir/empty/new", "dir/empty", "dir"} {
		for name, do := range operations(f, path) {
			switch {
			case path == "dir" && name != "Move" && name != "Copy" && name != "Delete" && name != "DeleteAll":
			default:
				require.Error(t, do(t.Context()), "%s of %s", name, path)
			}
		}
	}
	for name, do := range operations(f, "dir/empty/theirs") {
		if name != "MoveTo" && name != "CopyTo" {
			require.ErrorIs(t, do(t.Context()), ctxperm.ErrInvalid, name)
		}
	}
	require.Equal(t, before, w.tree())
	require.NoError(t, unix.Unmount(at, 0))
}
