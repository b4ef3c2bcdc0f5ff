package files_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
)

// whole returns the operations on a tree.
func whole() map[string]func(ctx context.Context, f *files.Files) error {
	return map[string]func(ctx context.Context, f *files.Files) error{
		"delete": func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, "dir") },
		"move":   func(ctx context.Context, f *files.Files) error { return f.Move(ctx, "dir", "to") },
		"copy":   func(ctx context.Context, f *files.Files) error { return f.Copy(ctx, "dir", "to") },
	}
}

// TestTreesAreAskedForWhole checks that every entry is authorized, and that one
// denial leaves all of them unchanged.
func TestTreesAreAskedForWhole(t *testing.T) {
	for name, want := range map[string][]string{
		"delete": {
			"delete file://workspace/dir", "list file://workspace/dir",
			"delete file://workspace/dir/b.txt",
			"delete file://workspace/dir/empty", "list file://workspace/dir/empty",
		},
		"move": {
			"read file://workspace/dir", "delete file://workspace/dir", "write file://workspace/to", "list file://workspace/dir",
			"read file://workspace/dir/b.txt", "delete file://workspace/dir/b.txt", "write file://workspace/to/b.txt",
			"read file://workspace/dir/empty", "delete file://workspace/dir/empty", "write file://workspace/to/empty",
			"list file://workspace/dir/empty",
		},
		"copy": {
			"read file://workspace/dir", "write file://workspace/to", "list file://workspace/dir",
			"read file://workspace/dir/b.txt", "write file://workspace/to/b.txt",
			"read file://workspace/dir/empty", "write file://workspace/to/empty", "list file://workspace/dir/empty",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			w.createFiles()
			call := w.begin(w.host())
			require.NoError(t, whole()[name](t.Context(), w.files(call)))
			var asked []string
			for _, a := range w.asked {
				asked = append(asked, a.String())
			}
			require.Equal(t, want, asked)
			for _, c := range call.Changes() {
				require.Equal(t, "file", c.Scheme)
			}
			for _, denied := range want {
				w := newTestEnv(t)
				w.createFiles()
				before := w.tree()
				w.gate = func(_ context.Context, a perm.ResourceAccess) (callstate.Ruling, error) {
					if a.String() == denied {
						return callstate.Ruling{}, &callstate.DeniedError{Access: a, Stage: "policy", Why: "no"}
					}
					return callstate.Ruling{}, nil
				}
				c := w.begin(w.host())
				require.ErrorIs(t, whole()[name](t.Context(), w.files(c)), ctxperm.ErrDenied, denied)
				require.Equal(t, before, w.tree(), denied)
				require.Empty(t, c.Changes())
				require.NoError(t, c.Close(t.Context()))
			}
		})
	}
}

// TestOneBarrier checks that any number of entries needs one journal write
// before the first effect. Each directory is synced once, and a new one once
// more before it gets its name.
func TestOneBarrier(t *testing.T) {
	for name, do := range whole() {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			w.createFiles()
			for i := range 50 {
				w.put(filepath.Join("dir", strings.Repeat("x", i+1)), "x", 0o600)
			}
			barriers, synced := 0, 0
			h := w.host()
			call := w.begin(h)
			h.OnPoint = func(id string) error {
				if strings.HasPrefix(id, "journal.append") {
					barriers++
				}
				if id == "files.syncdir" {
					synced++
				}
				return nil
			}
			require.NoError(t, do(t.Context(), w.files(call)))
			require.Equal(t, 1, barriers)
			require.LessOrEqual(t, synced, 5)
			require.GreaterOrEqual(t, len(call.Changes()), 53)
		})
	}
}

func TestTreesThatAreRefused(t *testing.T) {
	move := func(from, to string) func(context.Context, *files.Files) error {
		return func(ctx context.Context, f *files.Files) error { return f.Move(ctx, from, to) }
	}
	for _, c := range []struct {
		name string
		do   func(context.Context, *files.Files) error
		is   error
		says string
	}{
		{"delete nothing", func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, "none") }, fs.ErrNotExist, ""},
		{"delete the root", func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, ".") }, ctxperm.ErrInvalid, ""},
		{"delete a FIFO", func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, "odd") }, ctxperm.ErrInvalid, "made again"},
		{"delete what is reserved", func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, "busy") }, ctxperm.ErrInvalid, "reserved"},
		{"delete what may not be written in", func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, "shut") }, ctxperm.ErrInvalid, "its owner"},
		{"move to itself", move("dir", "dir"), ctxperm.ErrInvalid, "itself"},
		{"move into itself", move("dir", "dir/x"), ctxperm.ErrInvalid, "itself"},
		{"move onto something", move("a.txt", "long.txt"), fs.ErrExist, ""},
		{"move nothing", move("none", "x"), fs.ErrNotExist, ""},
		{"move to nowhere", move("a.txt", "none/x"), fs.ErrNotExist, "folder"},
		{"move below a file", move("a.txt", "long.txt/x"), ctxperm.ErrInvalid, "folder"},
		{"move out", move("a.txt", "../x"), ctxperm.ErrInvalid, ""},
		{"move to a reserved name", move("a.txt", ".remit-stage-0"), ctxperm.ErrInvalid, "reserved"},
		{"move a link that would lead out", move("deep/er/up", "up"), ctxperm.ErrInvalid, "lead out"},
		{"copy a link that would lead out", func(ctx context.Context, f *files.Files) error { return f.Copy(ctx, "deep/er", "er") }, ctxperm.ErrInvalid, "lead out"},
		{"copy onto something", func(ctx context.Context, f *files.Files) error { return f.Copy(ctx, "a.txt", "dir") }, fs.ErrExist, ""},
		{"make a folder of a file", func(ctx context.Context, f *files.Files) error { return f.MkdirAll(ctx, "a.txt/x", 0) }, fs.ErrExist, ""},
		{"make a folder nobody may use", func(ctx context.Context, f *files.Files) error { return f.MkdirAll(ctx, "x/y", 0o500) }, ctxperm.ErrInvalid, "0700"},
		{"bits of a link", func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "link", 0o600) }, ctxperm.ErrInvalid, "link"},
		{"bits of nothing", func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "none", 0o600) }, fs.ErrNotExist, ""},
		{"bits that hide", func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "a.txt", 0o200) }, ctxperm.ErrInvalid, "0400"},
		{"bits that shut a folder", func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "dir", 0o600) }, ctxperm.ErrInvalid, "0700"},
		{"bits of a type", func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "a.txt", fs.ModeSetuid|0o700) }, ctxperm.ErrInvalid, ""},
		{"append to a link", func(ctx context.Context, f *files.Files) error { return f.Append(ctx, "link", nil) }, ctxperm.ErrInvalid, "link"},
		{"append too much", func(ctx context.Context, f *files.Files) error {
			return f.Append(ctx, "a.txt", make([]byte, files.MaxFile))
		}, ctxperm.ErrInvalid, "at most"},
		{"a link where something is", func(ctx context.Context, f *files.Files) error { return f.Symlink(ctx, "a.txt", "long.txt") }, fs.ErrExist, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestEnv(t)
			w.createFiles()
			for _, dir := range []string{"odd", "busy", "shut", "deep/er"} {
				require.NoError(t, os.MkdirAll(filepath.Join(w.dir, dir), 0o755))
			}
			makeFIFO(t, filepath.Join(w.dir, "odd/fifo"))
			w.put("busy/.remit-stage-0", "", 0o600)
			w.put("shut/in", "", 0o600)
			require.NoError(t, os.Symlink("../../a.txt", filepath.Join(w.dir, "deep/er/up")))
			require.NoError(t, os.Chmod(filepath.Join(w.dir, "shut"), 0o555))
			t.Cleanup(func() { _ = os.Chmod(filepath.Join(w.dir, "shut"), 0o755) })
			before := w.tree()
			call := w.begin(w.host())
			err := c.do(t.Context(), w.files(call))
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, before, w.tree())
			require.Empty(t, call.Changes())
			require.NoError(t, call.Close(t.Context()))
		})
	}
}

// TestTargets checks that a link never leads out of the root, regardless of
// other links.
func TestTargets(t *testing.T) {
	for target, ok := range map[string]bool{
		"a.txt": true, "../a.txt": true, "./x/y": true, "none": true, "..": true, ".././dir": true, "x//y": true,
		"": false, "/etc/passwd": false, "../../x": false, "x/../y": false, "x\x00": false, "../..": false, "../dir/../../x": false,
	} {
		w := newTestEnv(t)
		w.createFiles()
		err := w.files(w.begin(w.host())).Symlink(t.Context(), target, "dir/new")
		if !ok {
			require.ErrorIs(t, err, ctxperm.ErrInvalid, target)
			continue
		}
		require.NoError(t, err, target)
		got, err := os.Readlink(filepath.Join(w.dir, "dir/new"))
		require.NoError(t, err)
		require.Equal(t, target, got)
	}
}

// TestMoveAndCopy checks that the new entries equal the old ones, with their
// times if they were moved.
func TestMoveAndCopy(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	require.NoError(t, os.Chmod(filepath.Join(w.dir, "run.sh"), 0o755|fs.ModeSetuid))
	before := w.tree()
	f, ctx := w.files(w.begin(w.host())), t.Context()
	require.NoError(t, f.Move(ctx, "a.txt", "dir/a2.txt"))
	require.NoError(t, f.Move(ctx, "dir", "folder"))
	require.NoError(t, f.Move(ctx, "run.sh", "go.sh"))
	require.NoError(t, f.Copy(ctx, "folder", "again"))
	after := w.tree()
	require.Equal(t, before["a.txt"], after["folder/a2.txt"])
	require.Equal(t, before["dir/b.txt"], after["folder/b.txt"])
	require.Equal(t, before["dir/empty"], after["folder/empty"])
	require.Equal(t, fs.FileMode(0o755), after["go.sh"].mode, "setuid does not go along")
	require.NotContains(t, after, "a.txt")
	require.NotContains(t, after, "dir")
	one, two := after["folder/a2.txt"], after["again/a2.txt"]
	require.NotEqual(t, one.mtime, two.mtime)
	two.mtime = one.mtime
	require.Equal(t, one, two)
}

// TestCopyOfWhatChanges checks that a copy is of the recorded version, or
// fails.
func TestCopyOfWhatChanges(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	h := w.host()
	h.OnPoint = at("files.draft", func() { w.put("a.txt", theirs, 0o640) })
	err := w.do(h, func(ctx context.Context, f *files.Files) error { return f.Copy(ctx, "a.txt", "new.txt") })
	require.ErrorIs(t, err, files.ErrConflict)
	require.NotContains(t, w.tree(), "new.txt")
	require.Empty(t, w.revert().NotReverted())
	require.Equal(t, theirs, w.read("a.txt"))
}

// TestFullFolderKeepsItsEntries checks that bits of a folder change in place,
// even if the folder was removed and created again in between.
func TestFullFolderKeepsItsEntries(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	before := w.tree()
	require.NoError(t, w.do(w.host(), func(ctx context.Context, f *files.Files) error {
		if err := f.Chmod(ctx, "dir", 0o711); err != nil {
			return err
		}
		if err := f.DeleteAll(ctx, "dir"); err != nil {
			return err
		}
		return f.Write(ctx, "dir/empty", []byte("now a file"), files.WriteOptions{MakeParents: true})
	}))
	require.Empty(t, w.revert().NotReverted())
	require.Equal(t, before, w.tree())
}
