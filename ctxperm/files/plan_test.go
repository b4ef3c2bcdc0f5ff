package files_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// changes runs an action and returns its recorded changes.
func (w *testEnv) changes(act func(ctx context.Context, f *files.Files) error) []effect.Change {
	w.t.Helper()
	c := w.begin(w.host())
	require.NoError(w.t, act(w.t.Context(), w.files(c)))
	require.NoError(w.t, c.Close(w.t.Context()))
	return c.Changes()
}

func (w *testEnv) scheme() revert.Scheme { return w.schemeOn(w.host()) }

func (w *testEnv) schemeOn(h host.Host) revert.Scheme {
	return fileInternals.Scheme(func(name string) (disk.Root, bool) { return w.root, name == "workspace" }, h)
}

func (w *testEnv) plan(s revert.Scheme, changes []effect.Change) []effect.Step {
	w.t.Helper()
	steps, blobs, err := s.Plan(w.t.Context(), changes, w.journal)
	require.NoError(w.t, err)
	require.NoError(w.t, w.journal.Append(w.t.Context(), journal.Batch{Blobs: blobs}))
	return steps
}

func (w *testEnv) apply(s revert.Scheme, steps []effect.Step) (counters []effect.Change) {
	w.t.Helper()
	for _, step := range steps {
		if step.Plan == effect.Restored {
			res := s.Apply(w.t.Context(), step, w.journal)
			require.Equal(w.t, effect.Restored, res.Outcome, res.Why)
			require.Equal(w.t, step.Change.Post, res.Now)
			counters = append(counters, step.Change)
		}
	}
	return counters
}

// TestRedo checks that the changes of a revert are ordinary changes. Reverting
// them restores the first ones, any number of times.
func TestRedo(t *testing.T) {
	each(t, func(t *testing.T, a action, fresh func() *testEnv) {
		w := fresh()
		before := w.tree()
		done := w.changes(a.do)
		after := w.tree()
		s := w.scheme()
		for range 2 {
			done = w.apply(s, w.plan(s, done))
			require.Equal(t, before, w.tree())
			done = w.apply(s, w.plan(s, done))
			require.Equal(t, after, w.tree())
		}
	})
}

// TestTwiceEqualsOnce checks that a plan after a revert does nothing.
func TestTwiceEqualsOnce(t *testing.T) {
	each(t, func(t *testing.T, a action, fresh func() *testEnv) {
		w := fresh()
		done := w.changes(a.do)
		s := w.scheme()
		steps := w.plan(s, done)
		w.apply(s, steps)
		for _, step := range w.plan(s, done) {
			require.Equal(t, effect.Already, step.Plan, step.Why)
		}
		for _, step := range steps {
			require.Equal(t, effect.Conflict, s.Apply(t.Context(), step, w.journal).Outcome)
		}
	})
}

// TestConflicts checks that changes of another process stay, and that the plan
// describes them.
func TestConflicts(t *testing.T) {
	write := func(ctx context.Context, f *files.Files) error {
		return f.Write(ctx, "a.txt", []byte("ours"), files.WriteOptions{})
	}
	del := func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, "a.txt") }
	mkdir := func(ctx context.Context, f *files.Files) error { return f.Mkdir(ctx, "made", 0) }
	link := func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, "link") }
	below := func(ctx context.Context, f *files.Files) error {
		return f.Write(ctx, "dir/new", nil, files.WriteOptions{})
	}
	for _, c := range []struct {
		name string
		do   func(context.Context, *files.Files) error
		then func(w *testEnv, dir string) error
		says string
	}{
		{"other content", write, func(_ *testEnv, dir string) error {
			return os.WriteFile(filepath.Join(dir, "a.txt"), []byte("theirs"), 0o600)
		}, "content differs"},
		{"other bits", write, func(_ *testEnv, dir string) error { return os.Chmod(filepath.Join(dir, "a.txt"), 0o600) }, "from 0640 to 0600"},
		{"other attributes", write, func(w *testEnv, dir string) error {
			if !w.root.Features().Xattrs {
				w.t.Skip("no attributes here")
			}
			setXattr(w.t, filepath.Join(dir, "a.txt"), "user.note", "theirs")
			return nil
		}, "attributes"},
		{"deleted", write, func(_ *testEnv, dir string) error { return os.Remove(filepath.Join(dir, "a.txt")) }, "was deleted"},
		{"a directory", write, func(_ *testEnv, dir string) error {
			_ = os.Remove(filepath.Join(dir, "a.txt"))
			return os.Mkdir(filepath.Join(dir, "a.txt"), 0o755)
		}, "of type dir"},
		{"made again", del, func(_ *testEnv, dir string) error {
			return os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o600)
		}, "created it again"},
		{"made a directory", del, func(_ *testEnv, dir string) error { return os.Mkdir(filepath.Join(dir, "a.txt"), 0o755) }, "a directory was made"},
		{"another link", link, func(_ *testEnv, dir string) error { return os.Symlink("a.txt", filepath.Join(dir, "link")) }, "created it again"},
		{"a full directory", mkdir, func(_ *testEnv, dir string) error {
			for i := range 7 {
				if err := os.Mkdir(filepath.Join(dir, "made", fmt.Sprint(i)), 0o755); err != nil {
					return err
				}
			}
			return nil
		}, `"0" "1" "2" "3" "4"] and 2 more`},
		{"the folder is a link", below, func(_ *testEnv, dir string) error {
			if err := os.Rename(filepath.Join(dir, "dir"), filepath.Join(dir, "moved")); err != nil {
				return err
			}
			return os.Symlink("moved", filepath.Join(dir, "dir"))
		}, "symbolic link"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestEnv(t)
			w.createFiles()
			changes := w.changes(c.do)
			require.NoError(t, c.then(w, w.dir))
			before := w.tree()
			steps := w.plan(w.scheme(), changes)
			require.Len(t, steps, 1)
			require.Equal(t, effect.Conflict, steps[0].Plan)
			require.Contains(t, steps[0].Why, c.says)
			require.Equal(t, before, w.tree())
		})
	}
}

// TestSettledFolderIsReplaced replaces a folder with a link while it is made
// durable. The folder has nothing left to sync, and others must continue.
func TestSettledFolderIsReplaced(t *testing.T) {
	w := newTestEnv(t)
	changes := w.changes(func(ctx context.Context, f *files.Files) error { return f.Mkdir(ctx, "made", 0) })
	h := w.host()
	swapped := false
	h.OnPoint = func(id string) error {
		if id == "files.syncdir" && !swapped {
			swapped = true
			require.NoError(t, os.Rename(filepath.Join(w.dir, "made"), filepath.Join(w.dir, "moved")))
			require.NoError(t, os.Symlink("moved", filepath.Join(w.dir, "made")))
		}
		return nil
	}
	token, err := fileInternals.Scheme(func(name string) (disk.Root, bool) { return w.root, name == "workspace" }, h).Settle(t.Context(), changes[0])
	require.NoError(t, err)
	require.True(t, swapped)
	require.False(t, token.Same(changes[0].Post), "that is not the folder that was made")
}

// TestUnreachable checks that an unreachable path fails with a reason, and does not
// stop others.
func TestUnreachable(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	changes := w.changes(actions()[3].do)
	nowhere := fileInternals.Scheme(func(string) (disk.Root, bool) { return nil, false }, w.host())
	token, err := nowhere.Settle(t.Context(), changes[0])
	require.NoError(t, err)
	require.False(t, token.Known())
	odd := changes[0]
	odd.N, odd.Resource, odd.Inverse = 2, "file://workspace/dir/b.txt", []byte(`{"stage":"../../a.txt"}`)
	other := changes[0]
	other.N, other.Resource = 3, "https://example.com/"
	for _, c := range []struct {
		s    revert.Scheme
		of   effect.Change
		says string
	}{
		{nowhere, changes[0], `root "workspace": its recorded folder does not exist`},
		{w.scheme(), odd, "not a stage name"},
		{w.scheme(), other, "not a file below a root"},
	} {
		steps := w.plan(c.s, []effect.Change{c.of})
		require.Len(t, steps, 1)
		require.Equal(t, effect.Failed, steps[0].Plan)
		require.Contains(t, steps[0].Why, c.says)
		res := c.s.Apply(t.Context(), effect.Step{Plan: effect.Restored, Change: c.of}, w.journal)
		require.Equal(t, effect.Failed, res.Outcome)
	}

	restore := w.changes2(func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, "dir/b.txt") })
	require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "dir")))
	s := w.scheme()
	steps := w.plan(s, restore)
	require.Equal(t, effect.Restored, steps[0].Plan)
	res := s.Apply(t.Context(), steps[0], w.journal)
	require.Equal(t, effect.Failed, res.Outcome)
	require.Contains(t, res.Why, "its folder does not exist")
}

// changes2 is changes for a second call.
func (w *testEnv) changes2(act func(ctx context.Context, f *files.Files) error) []effect.Change {
	w.t.Helper()
	h := hosttest.New(99)
	c := w.call(h)
	require.NoError(w.t, act(w.t.Context(), w.files(c)))
	require.NoError(w.t, c.Close(w.t.Context()))
	return c.Changes()
}

// TestBetweenTwoChanges checks a call that wrote twice, with a write by another
// process between. A revert restores that version, not the one before it.
func TestBetweenTwoChanges(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	changes := w.changes(func(ctx context.Context, f *files.Files) error {
		for _, text := range []string{"1", "2"} {
			if err := f.Write(ctx, "a.txt", []byte("ours "+text), files.WriteOptions{}); err != nil {
				return err
			}
			if text == "1" {
				w.put("a.txt", theirs, 0o640)
			}
		}
		return nil
	})
	require.Len(t, changes, 2)
	s := w.scheme()
	steps := w.plan(s, changes)
	require.Len(t, steps, 2)
	require.Equal(t, effect.Restored, steps[0].Plan)
	require.Equal(t, []int{2}, steps[0].Of)
	require.Equal(t, effect.Conflict, steps[1].Plan)
	require.Equal(t, []int{1}, steps[1].Of)
	w.apply(s, steps)
	require.Equal(t, theirs, w.read("a.txt"))
}

// TestRestoredBetweenTwoChanges checks a file that another process restored
// between two changes of a call, so that both start from the same version.
func TestRestoredBetweenTwoChanges(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	was := w.read("a.txt")
	changes := w.changes(func(ctx context.Context, f *files.Files) error {
		if err := f.Write(ctx, "a.txt", []byte("ours 1"), files.WriteOptions{}); err != nil {
			return err
		}
		w.put("a.txt", was, 0o640)
		return f.Write(ctx, "a.txt", []byte("ours 2"), files.WriteOptions{})
	})
	s := w.scheme()
	steps := w.plan(s, changes)
	require.Len(t, steps, 1)
	require.Equal(t, effect.Restored, steps[0].Plan)
	require.Equal(t, []int{1, 2}, steps[0].Of)
	w.apply(s, steps)
	require.Equal(t, was, w.read("a.txt"))
}

// TestWrittenBack checks a call that leaves the content that it found. A revert
// also restores the time of the file.
func TestWrittenBack(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	before := w.tree()
	require.NoError(t, w.do(w.host(), func(ctx context.Context, f *files.Files) error {
		if err := f.Edit(ctx, "a.txt", "two", "2", false); err != nil {
			return err
		}
		return f.Edit(ctx, "a.txt", "2", "two", false)
	}))
	require.NotEqual(t, before, w.tree())
	require.Empty(t, w.revert().NotReverted())
	require.Equal(t, before, w.tree())
}

// TestAnyCall reverts a call of random operations on few names as a whole. The
// call and the revert may both die.
func TestAnyCall(t *testing.T) {
	runs := 800
	if planStep() == 1 {
		runs = 30_000
	}
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 2))
		w := newTestEnv(t)
		w.createFiles()
		w.root = []func() disk.Root{
			func() disk.Root { return w.root },
			func() disk.Root { return renamingRoot{w.root} },
			func() disk.Root { return weakRoot{w.root} },
		}[rng.IntN(3)]()
		before := w.tree()
		var log []string
		c := &crash{left: 1 + rng.IntN(200)}
		_ = w.do(c.on(w.host()), func(ctx context.Context, f *files.Files) error {
			for range 1 + rng.IntN(12) {
				log = append(log, anything(ctx, f, rng))
			}
			return nil
		})
		d := &crash{left: 1 + rng.IntN(300)}
		_, _ = w.revertAs(t.Context(), d.on(w.host()))
		rep := w.revert()
		require.Empty(t, rep.NotReverted(), "seed %d: %q", seed, log)
		require.Equal(t, before, w.tree(), "seed %d: %q", seed, log)
		w.end()
	}
}

// anything performs one random operation and returns its name.
func anything(ctx context.Context, f *files.Files, rng *rand.Rand) string {
	names := []string{"a.txt", "dir", "dir/b.txt", "dir/empty", "dir/empty/x", "link", "new", "new/x"}
	name, text := names[rng.IntN(len(names))], fmt.Sprint(rng.IntN(3))
	other := names[rng.IntN(len(names))]
	switch rng.IntN(13) {
	case 0:
		return fmt.Sprint("mkdir ", name, f.Mkdir(ctx, name, 0))
	case 1, 2:
		return fmt.Sprint("delete ", name, f.Delete(ctx, name))
	case 3:
		return fmt.Sprint("edit ", name, f.Edit(ctx, name, "t", text, true))
	case 4:
		return fmt.Sprint("delete all ", name, f.DeleteAll(ctx, name))
	case 5:
		return fmt.Sprint("move ", name, " ", other, f.Move(ctx, name, other))
	case 6:
		return fmt.Sprint("copy ", name, " ", other, f.Copy(ctx, name, other))
	case 7:
		return fmt.Sprint("chmod ", name, f.Chmod(ctx, name, []fs.FileMode{0o700, 0o755, 0o777}[rng.IntN(3)]))
	case 8:
		return fmt.Sprint("symlink ", name, f.Symlink(ctx, "a.txt", name))
	case 9:
		return fmt.Sprint("append ", name, f.Append(ctx, name, []byte(text)))
	case 10:
		return fmt.Sprint("mkdir all ", name, f.MkdirAll(ctx, name, 0))
	default:
		return fmt.Sprint("write ", name, f.Write(ctx, name, []byte(text), files.WriteOptions{MakeParents: rng.IntN(2) == 0}))
	}
}

// TestLinkComesBack checks entries that a call made in a directory in place of
// a link. They are gone after the link is restored, also for a revert that did
// not see it happen.
func TestLinkComesBack(t *testing.T) {
	for n := 1; ; n++ {
		w := newTestEnv(t)
		w.createFiles()
		before := w.tree()
		require.NoError(t, w.do(w.host(), func(ctx context.Context, f *files.Files) error {
			if err := f.Delete(ctx, "link"); err != nil {
				return err
			}
			return f.Copy(ctx, "dir", "link")
		}))
		c := &crash{left: n}
		_, _ = w.revertAs(t.Context(), c.on(w.host()))
		require.Empty(t, w.revert().NotReverted(), "died at %v", c.trace)
		require.Equal(t, before, w.tree())
		if w.end(); !c.ended {
			return
		}
	}
}

// TestPreviewOfZeros checks that a preview recognizes content with zeros as
// that of the call.
func TestPreviewOfZeros(t *testing.T) {
	for name, data := range map[string]string{"small": strings.Repeat("\x00", 5000), "large": strings.Repeat("\x00", 200<<10) + "end"} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			require.NoError(t, w.do(w.host(), func(ctx context.Context, f *files.Files) error {
				return f.Write(ctx, "zeros", []byte(data), files.WriteOptions{})
			}))
			rep, err := w.reverter(w.host()).Preview(t.Context(), txn, revert.Options{})
			require.NoError(t, err)
			require.Len(t, rep.Items, 1)
			require.Equal(t, effect.Restored, rep.Items[0].Outcome, rep.Items[0].Why)
		})
	}
}
