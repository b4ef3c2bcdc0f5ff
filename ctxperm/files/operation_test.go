package files_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/perm"
)

var (
	contexts      = handleaccess.ContextsOf[ctxperm.ToolContext, ctxperm.Permit]()
	fileInternals = handleaccess.FilesOf[files.ChangeSet, files.DetectedChanges, files.FilePreImage]()
)

func TestOpen(t *testing.T) {
	_, err := files.Open(ctxperm.ToolContext{}, "workspace")
	require.ErrorIs(t, err, ctxperm.ErrClosed)
	w := newTestEnv(t)
	_, err = files.Open(contexts.New(w.call(w.host())), "home")
	require.ErrorIs(t, err, ctxperm.ErrInvalid)
	require.ErrorContains(t, err, `no root "home"; there is workspace`)
	_, err = files.Open(contexts.New(callstate.New(callstate.Config{Recorder: w.call(w.host()).Config().Recorder})), "home")
	require.ErrorContains(t, err, "there is none")
	c := w.call(w.host())
	f := w.files(c)
	require.NoError(t, c.Close(t.Context()))
	_, err = f.ReadFile(t.Context(), "a.txt")
	require.ErrorIs(t, err, ctxperm.ErrClosed)
}

// TestBadPaths checks that a path that leaves the root, or is reserved, is
// refused before any decision.
func TestBadPaths(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	before := w.tree()
	f := w.files(w.begin(w.host()))
	for _, path := range []string{
		"", "/", "/etc/passwd", "..", "../x", "a/../b", "./a", "a//b", "a/", "a\x00b",
		".remit-stage-00", "dir/.remit-stage-", ".REMIT-Stage-x", ".remit-stage-x/inside",
	} {
		for name, do := range operations(f, path) {
			require.ErrorIs(t, do(t.Context()), ctxperm.ErrInvalid, "%s of %q", name, path)
		}
	}
	require.Empty(t, w.asked)
	require.Equal(t, before, w.tree())
}

// TestLinksAreNotFollowed checks that permission is for a path, and not for the
// target of a link.
func TestLinksAreNotFollowed(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	outside := t.TempDir()
	for name, target := range map[string]string{"alias": "dir", "out": outside, "up": "dir/../..", "self": "self"} {
		require.NoError(t, os.Symlink(target, filepath.Join(w.dir, name)))
	}
	before := w.tree()
	f := w.files(w.begin(w.host()))
	for _, path := range []string{"alias/b.txt", "out/x", "up/x", "self/x"} {
		for name, do := range operations(f, path) {
			require.ErrorIs(t, do(t.Context()), ctxperm.ErrInvalid, "%s of %s", name, path)
		}
	}
	for _, path := range []string{"link", "self"} {
		for name, do := range operations(f, path) {
			if !onLinks(name) {
				require.ErrorIs(t, do(t.Context()), ctxperm.ErrInvalid, "%s of %s", name, path)
			}
		}
	}
	_, err := f.List(t.Context(), "alias")
	require.ErrorIs(t, err, disk.ErrType)
	require.Equal(t, before, w.tree())
	require.Empty(t, w.list(outside))
}

func (w *testEnv) list(dir string) []os.DirEntry {
	w.t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(w.t, err)
	return entries
}

// TestAccesses checks that each operation authorizes exactly its accesses, and
// that a denied one has no effect.
func TestAccesses(t *testing.T) {
	for name, want := range map[string][]string{
		"ReadFile": {"read file://workspace/x/y%20z"},
		"Read":     {"read file://workspace/x/y%20z"},
		"Stat":     {"read file://workspace/x/y%20z"},
		"List":     {"list file://workspace/x/y%20z"},
		"Write":    {"write file://workspace/x/y%20z", "write file://workspace/x"},
		"Edit":     {"read file://workspace/x/y%20z", "write file://workspace/x/y%20z"},
		"Delete":   {"delete file://workspace/x/y%20z"},
		"Mkdir":    {"write file://workspace/x/y%20z"},

		"Walk":      {"list file://workspace/x/y%20z"},
		"Search":    {"list file://workspace/x/y%20z"},
		"DeleteAll": {"delete file://workspace/x/y%20z"},
		"Move":      {"read file://workspace/x/y%20z", "delete file://workspace/x/y%20z", "write file://workspace/free"},
		"Copy":      {"read file://workspace/x/y%20z", "write file://workspace/free"},
		"MkdirAll":  {"write file://workspace/x/y%20z", "write file://workspace/x"},
		"Chmod":     {"write file://workspace/x/y%20z"},
		"Symlink":   {"write file://workspace/x/y%20z"},
		"Append":    {"write file://workspace/x/y%20z"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			f := w.files(w.begin(w.host()))
			_ = operations(f, "x/y z")[name](t.Context())
			var asked []string
			for _, a := range w.asked {
				asked = append(asked, a.String())
			}
			require.Equal(t, want, asked)
			for i := range want {
				w := newTestEnv(t)
				n := 0
				w.gate = func(_ context.Context, a perm.ResourceAccess) (callstate.Ruling, error) {
					if n++; n > i {
						return callstate.Ruling{}, &callstate.DeniedError{Access: a, Stage: "policy", Why: "no"}
					}
					return callstate.Ruling{}, nil
				}
				c := w.begin(w.host())
				require.ErrorIs(t, operations(w.files(c), "x/y z")[name](t.Context()), ctxperm.ErrDenied)
				require.Empty(t, w.tree())
				require.Empty(t, c.Changes())
				require.NoError(t, c.Close(t.Context())) // would wait for a permit that was not ended
			}
		})
	}
}

func TestReading(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	w.put(".remit-stage-1", "", 0o644)
	f := w.files(w.begin(w.host()))
	ctx := t.Context()
	data, err := f.ReadFile(ctx, "a.txt")
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\nthree\n", string(data))
	for _, c := range []struct {
		offset, limit int64
		want          string
	}{{0, 0, "one\ntwo\nthree\n"}, {4, 3, "two"}, {13, 5, "\n"}, {14, 5, ""}, {1 << 40, 1, ""}} {
		part, err := f.Read(ctx, "a.txt", c.offset, c.limit)
		require.NoError(t, err)
		require.Equal(t, c.want, string(part.Data))
		require.Equal(t, int64(14), part.Size)
	}
	for _, bad := range [][2]int64{{-1, 0}, {0, -1}, {0, files.MaxFile + 1}} {
		_, err := f.Read(ctx, "a.txt", bad[0], bad[1])
		require.ErrorIs(t, err, ctxperm.ErrInvalid)
	}
	info, err := f.Stat(ctx, "link")
	require.NoError(t, err)
	require.Equal(t, "dir/b.txt", info.Target)
	require.Equal(t, "link", info.Type)
	info, err = f.Stat(ctx, "a.txt")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), info.Perm)
	found, err := f.List(ctx, ".")
	require.NoError(t, err)
	var listed []string
	for _, e := range found {
		listed = append(listed, e.Name+" "+e.Type)
	}
	require.Equal(t, []string{"a.txt file", "dir dir", "link link", "long.txt file", "run.sh file"}, listed)
	_, err = f.ReadFile(ctx, "none")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = f.ReadFile(ctx, "dir")
	require.ErrorIs(t, err, disk.ErrType)
	_, err = f.ReadFile(ctx, "a.txt/below")
	require.Error(t, err)
}

func TestLimits(t *testing.T) {
	w := newTestEnv(t)
	require.NoError(t, os.Truncate(w.sparse("big"), files.MaxFile+1))
	before := w.tree()["big"].mtime
	f := w.files(w.begin(w.host()))
	_, err := f.ReadFile(t.Context(), "big")
	require.ErrorIs(t, err, ctxperm.ErrInvalid)
	require.ErrorIs(t, f.Edit(t.Context(), "big", "a", "b", false), ctxperm.ErrInvalid)
	require.ErrorIs(t, f.Write(t.Context(), "x", make([]byte, files.MaxFile+1), files.WriteOptions{}), ctxperm.ErrInvalid)
	part, err := f.Read(t.Context(), "big", files.MaxFile-1, 10)
	require.NoError(t, err)
	require.Len(t, part.Data, 2)
	require.Equal(t, before, w.tree()["big"].mtime)
}

func (w *testEnv) sparse(name string) string {
	w.put(name, "", 0o644)
	return filepath.Join(w.dir, name)
}

// TestRefusals checks that a change that cannot be reverted, or a file of
// another type than expected, is refused without a record.
func TestRefusals(t *testing.T) {
	write := func(path string, o files.WriteOptions) func(context.Context, *files.Files) error {
		return func(ctx context.Context, f *files.Files) error { return f.Write(ctx, path, []byte("x"), o) }
	}
	edit := func(path, old string, all bool) func(context.Context, *files.Files) error {
		return func(ctx context.Context, f *files.Files) error { return f.Edit(ctx, path, old, "new", all) }
	}
	del := func(path string) func(context.Context, *files.Files) error {
		return func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, path) }
	}
	mkdir := func(path string, bits fs.FileMode) func(context.Context, *files.Files) error {
		return func(ctx context.Context, f *files.Files) error { return f.Mkdir(ctx, path, bits) }
	}
	for _, c := range []struct {
		name string
		do   func(context.Context, *files.Files) error
		is   error
		says string
	}{
		{"write to a link", write("link", files.WriteOptions{}), ctxperm.ErrInvalid, "symbolic link"},
		{"write to a directory", write("dir", files.WriteOptions{}), ctxperm.ErrInvalid, "of type dir"},
		{"write to a file of two names", write("twin", files.WriteOptions{}), ctxperm.ErrInvalid, "hard links"},
		{"edit a file of two names", edit("twin", "b", false), ctxperm.ErrInvalid, "hard links"},
		{"write to a FIFO", write("fifo", files.WriteOptions{}), ctxperm.ErrInvalid, "of type other"},
		{"write below a file", write("a.txt/x", files.WriteOptions{}), ctxperm.ErrInvalid, "folder"},
		{"write below nothing", write("none/x", files.WriteOptions{}), fs.ErrNotExist, "folder"},
		{"write if absent", write("a.txt", files.WriteOptions{IfAbsent: true}), fs.ErrExist, ""},
		{"write with setuid", write("x", files.WriteOptions{Perm: fs.ModeSetuid | 0o755}), ctxperm.ErrInvalid, "0400"},
		{"write what its owner cannot read", write("x", files.WriteOptions{Perm: 0o244}), ctxperm.ErrInvalid, "0400"},
		{"edit what is not there", edit("a.txt", "four", false), ctxperm.ErrInvalid, "does not occur"},
		{"edit what is there twice", edit("a.txt", "e\n", false), ctxperm.ErrInvalid, "occurs 2 times"},
		{"edit nothing", edit("a.txt", "", true), ctxperm.ErrInvalid, "empty"},
		{"edit no file", edit("none", "x", true), fs.ErrNotExist, ""},
		{"delete nothing", del("none"), fs.ErrNotExist, ""},
		{"delete what holds something", del("dir"), ctxperm.ErrInvalid, "not empty"},
		{"delete a FIFO", del("fifo"), ctxperm.ErrInvalid, "made again"},
		{"delete the root", del("."), ctxperm.ErrInvalid, ""},
		{"make what exists", mkdir("a.txt", 0), fs.ErrExist, ""},
		{"make what its owner cannot use", mkdir("x", 0o500), ctxperm.ErrInvalid, "0700"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestEnv(t)
			w.createFiles()
			w.put("first", "b", 0o644)
			require.NoError(t, os.Link(filepath.Join(w.dir, "first"), filepath.Join(w.dir, "twin")))
			makeFIFO(t, filepath.Join(w.dir, "fifo"))
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

func TestWriting(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	call := w.begin(w.host())
	f, ctx := w.files(call), t.Context()

	require.NoError(t, f.Write(ctx, "run.sh", []byte("#!/bin/bash\n"), files.WriteOptions{}))
	require.Equal(t, fs.FileMode(0o755), w.tree()["run.sh"].mode)
	require.NoError(t, f.Write(ctx, "run.sh", []byte("#!/bin/bash\n"), files.WriteOptions{Perm: 0o600}))
	require.Equal(t, fs.FileMode(0o600), w.tree()["run.sh"].mode)
	changes := len(call.Changes())
	require.NoError(t, f.Write(ctx, "run.sh", []byte("#!/bin/bash\n"), files.WriteOptions{}))
	require.Len(t, call.Changes(), changes, "nothing changes, so nothing is recorded")

	require.NoError(t, f.Edit(ctx, "a.txt", "e\n", "E\n", true))
	require.Equal(t, "onE\ntwo\nthreE\n", w.read("a.txt"))
	require.Equal(t, fs.FileMode(0o640), w.tree()["a.txt"].mode)
	if w.root.Features().Xattrs {
		require.Equal(t, map[string]string{"user.note": "kept"}, w.tree()["a.txt"].xattrs)
	}

	require.NoError(t, f.Write(ctx, "a.txt", nil, files.WriteOptions{}))
	require.Equal(t, fs.FileMode(0o640), w.tree()["a.txt"].mode)
	if w.root.Features().Xattrs {
		require.Equal(t, map[string]string{"user.note": "kept"}, w.tree()["a.txt"].xattrs)
	}

	require.NoError(t, f.Write(ctx, "p/q/r", nil, files.WriteOptions{MakeParents: true}))
	require.Equal(t, fs.FileMode(0o644), w.tree()["p/q/r"].mode)
	require.Equal(t, fs.ModeDir|0o755, w.tree()["p/q"].mode)
	require.NoError(t, f.Mkdir(ctx, "private", 0o700))
	require.Equal(t, fs.ModeDir|0o700, w.tree()["private"].mode)

	require.NoError(t, os.Chmod(filepath.Join(w.dir, "long.txt"), 0o755|fs.ModeSetuid))
	require.NoError(t, f.Write(ctx, "long.txt", nil, files.WriteOptions{}))
	require.Equal(t, fs.FileMode(0o755), w.tree()["long.txt"].mode, "setuid does not pass to other content")
}

// TestConflictHasNoEffect checks that an operation that failed in a conflict is
// recorded as having had no effect, so that its revert is no conflict.
func TestConflictHasNoEffect(t *testing.T) {
	t.Run("open file", func(t *testing.T) { conflictHasNoEffect(t, func(r disk.Root) disk.Root { return r }) })
	t.Run("by name", func(t *testing.T) { conflictHasNoEffect(t, func(r disk.Root) disk.Root { return plainRoot{r} }) })
}

// plainRoot is a root without any optional method: it neither pins a folder nor
// opens a described file.
type plainRoot struct{ disk.Root }

func conflictHasNoEffect(t *testing.T, on func(disk.Root) disk.Root) {
	w := newTestEnv(t)
	w.createFiles()
	w.root = on(w.root)
	if !w.root.Features().Lease {
		t.Skip("writers are not seen here")
	}
	var held *os.File
	h := w.host()
	h.OnPoint = func(id string) (err error) {
		if id == "files.exchange" && held == nil {
			held, err = os.OpenFile(filepath.Join(w.dir, "a.txt"), os.O_WRONLY|os.O_APPEND, 0)
		}
		return err
	}
	before := w.tree()
	err := w.do(h, func(ctx context.Context, f *files.Files) error {
		return f.Write(ctx, "a.txt", []byte("x"), files.WriteOptions{})
	})
	require.ErrorIs(t, err, files.ErrConflict)
	require.ErrorContains(t, err, "open for writing")
	require.Equal(t, before, w.tree())
	_, err = held.WriteString("four\n")
	require.NoError(t, err)
	require.NoError(t, held.Close())
	require.Empty(t, w.revert().NotReverted())
	require.Equal(t, "one\ntwo\nthree\nfour\n", w.read("a.txt"))
}
