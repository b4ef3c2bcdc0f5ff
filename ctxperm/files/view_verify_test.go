package files_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// testEnv is a folder, a journal and the transactions on both. It survives the
// death of any number of processes.
type testEnv struct {
	t       *testing.T
	dir     string
	root    disk.Root
	journal journal.Journal
	seed    uint64
	asked   []perm.ResourceAccess
	gate    callstate.AuthorizeFunc
	end     func() // releases folder and root; the end of the test also calls it
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	dir := folder(t)
	root, err := disk.OpenRoot(dir)
	require.NoError(t, err)
	w := &testEnv{t: t, dir: dir, root: root, journal: journal.Memory()}
	w.end = func() {
		_ = root.Close()
		_ = os.RemoveAll(dir)
	}
	t.Cleanup(w.end)
	w.gate = func(_ context.Context, a perm.ResourceAccess) (callstate.Ruling, error) {
		w.asked = append(w.asked, a)
		return callstate.Ruling{}, nil
	}
	return w
}

// folder returns a folder in memory if the system has one. These tests kill
// processes only, so syncs do not matter.
func folder(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"
	if dir, err := os.MkdirTemp(memory, "files-"); err == nil {
		return dir
	}
	return t.TempDir()
}

// host returns the host of a new process.
func (w *testEnv) host() *hosttest.Host {
	w.seed++
	return hosttest.New(w.seed)
}

// crash is the death of a process: it does nothing more from the n-th point on.
type crash struct {
	left  int
	ended bool
	trace []string
}

var errProcessEnded = errors.New("the process is dead")

func (c *crash) on(h *hosttest.Host) *hosttest.Host {
	h.OnPoint = func(id string) error {
		c.trace = append(c.trace, id)
		if c.left--; c.left <= 0 {
			c.ended = true
			return errProcessEnded
		}
		return nil
	}
	return h
}

const txn = "t_1"

// begin opens a transaction with one call that has started.
func (w *testEnv) begin(h host.Host) *callstate.Call {
	w.t.Helper()
	rec := revert.NewRecorder(w.journal, h, "s_1").In(txn)
	owner := journal.Ownership{Txn: txn, Owner: w.journal.Owner()}
	require.NoError(w.t, rec.Write(w.t.Context(), revert.Write{
		Records: []revert.CallRecord{{Body: &record.Begun{Owner: owner.Owner}}},
		Take:    journal.OwnerChange{To: owner}, Durable: true,
	}))
	return w.call(h)
}

func (w *testEnv) call(h host.Host) *callstate.Call {
	return callstate.New(callstate.Config{
		ID: host.NewID(h, "c_"), Key: "k", Tool: "test", Gate: w.gate,
		Recorder: revert.NewRecorder(w.journal, h, "s_1").In(txn),
		Roots:    map[string]disk.Root{"workspace": w.root},
		Started: &record.Started{
			Sequence: 1, Key: "k", Tool: record.ToolRef{Name: "test"}, Input: []byte("{}"),
			Class: effect.Reversible, Declared: true, Confinement: "handles", Decision: []byte("{}"),
		},
	})
}

func (w *testEnv) files(c *callstate.Call) *files.Files {
	w.t.Helper()
	f, err := files.Open(contexts.New(c), "workspace")
	require.NoError(w.t, err)
	return f
}

// do runs an action as a separate call and records its end, unless the process
// has died.
func (w *testEnv) do(h *hosttest.Host, act func(ctx context.Context, f *files.Files) error) error {
	w.t.Helper()
	on := h.OnPoint
	h.OnPoint = nil
	c := w.begin(h)
	h.OnPoint = on
	err := act(w.t.Context(), w.files(c))
	require.NoError(w.t, c.Close(w.t.Context()))
	lines := append(c.Start(), revert.CallRecord{Call: c.Config().ID, Body: &record.Done{Output: []byte("null"), Posts: c.Posts()}})
	if werr := c.Config().Recorder.Write(w.t.Context(), revert.Write{Records: lines, Durable: true}); werr != nil {
		require.ErrorIs(w.t, werr, errProcessEnded)
	}
	return err
}

func (w *testEnv) reverter(h host.Host) *revert.Reverter {
	roots := func(name string) (disk.Root, bool) { return w.root, name == "workspace" }
	ways := revert.Environment{Schemes: []revert.Scheme{fileInternals.Scheme(roots, h)}}
	return &revert.Reverter{Journal: w.journal, Host: h, EnvironmentFor: func(context.Context, string) (revert.Environment, error) {
		return ways, nil
	}}
}

// revertAs reverts the transaction as the process of h. All processes share one
// open journal, which never dies.
func (w *testEnv) revertAs(ctx context.Context, h host.Host) (revert.Report, error) {
	r := w.reverter(h)
	if t, err := revert.Load(ctx, w.journal, txn); err == nil && t.End == "" {
		return r.Abort(ctx, txn, revert.Options{})
	}
	return r.Revert(ctx, txn, revert.Options{})
}

// revert reverts everything in a new process.
func (w *testEnv) revert() revert.Report {
	w.t.Helper()
	rep, err := w.revertAs(w.t.Context(), w.host())
	require.NoError(w.t, err)
	return rep
}

// entry is the state of one file that a revert must restore.
type entry struct {
	mode   fs.FileMode
	data   string
	mtime  time.Time // files only
	xattrs map[string]string
}

// tree reads a whole folder without the code under test.
func (w *testEnv) tree() map[string]entry { return w.below("") }

// below reads one folder in it.
func (w *testEnv) below(dir string) map[string]entry {
	w.t.Helper()
	out, top := map[string]entry{}, filepath.Join(w.dir, dir)
	require.NoError(w.t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == top {
			return err
		}
		rel, err := filepath.Rel(w.dir, path)
		require.NoError(w.t, err)
		info, err := d.Info()
		require.NoError(w.t, err)
		e := entry{mode: info.Mode()}
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			require.NoError(w.t, err)
			short := strings.ReplaceAll(string(data), long, "<long>") // keeps failure messages readable
			e.data, e.mtime, e.xattrs = short, info.ModTime(), xattrs(w.t, path)
		case info.Mode()&fs.ModeSymlink != 0:
			e.data, err = os.Readlink(path)
			require.NoError(w.t, err)
		}
		out[filepath.ToSlash(rel)] = e
		return nil
	}))
	return out
}

// long is content that is written in more than one chunk.
var long = strings.Repeat("a line of a long file\n", 6_500)

// createFiles creates the files that the actions of the tests use.
func (w *testEnv) createFiles() {
	w.t.Helper()
	old := time.Date(2020, 2, 3, 4, 5, 6, 789, time.UTC)
	w.put("a.txt", "one\ntwo\nthree\n", 0o640)
	w.put("long.txt", long, 0o644)
	w.put("run.sh", "#!/bin/sh\n", 0o755)
	require.NoError(w.t, os.MkdirAll(filepath.Join(w.dir, "dir/empty"), 0o755))
	w.put("dir/b.txt", "b", 0o600)
	require.NoError(w.t, os.Symlink("dir/b.txt", filepath.Join(w.dir, "link")))
	if w.root.Features().Xattrs {
		setXattr(w.t, filepath.Join(w.dir, "a.txt"), "user.note", "kept")
	}
	for _, name := range []string{"a.txt", "long.txt", "run.sh", "dir/b.txt"} {
		require.NoError(w.t, os.Chtimes(filepath.Join(w.dir, name), old, old))
	}
}

func (w *testEnv) put(name, data string, mode fs.FileMode) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(filepath.Join(w.dir, name), []byte(data), mode))
	require.NoError(w.t, os.Chmod(filepath.Join(w.dir, name), mode))
}

func (w *testEnv) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	require.NoError(w.t, err)
	return string(data)
}
