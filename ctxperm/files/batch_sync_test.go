package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
)

// many is a number of files such that each folder has enough for one shared
// sync.
const many = 120

// createManyFiles fills a folder with many files in several folders, some nested.
func (w *testEnv) createManyFiles() {
	w.t.Helper()
	for i := range many {
		dir := filepath.Join("crowd", strings.Repeat("in/", i%3))
		require.NoError(w.t, os.MkdirAll(filepath.Join(w.dir, dir), 0o755))
		w.put(filepath.Join(dir, fmt.Sprint("f", i)), fmt.Sprint("content ", i), 0o640)
	}
	require.NoError(w.t, os.Symlink("f0", filepath.Join(w.dir, "crowd/link")))
}

// bulkOperations returns operations on many files at once.
func bulkOperations() map[string]func(ctx context.Context, f *files.Files) error {
	return map[string]func(ctx context.Context, f *files.Files) error{
		"delete": func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, "crowd") },
		"move":   func(ctx context.Context, f *files.Files) error { return f.Move(ctx, "crowd", "to") },
		"copy":   func(ctx context.Context, f *files.Files) error { return f.Copy(ctx, "crowd", "to") },
	}
}

// differing returns the names that differ between two trees, which are too
// large to print.
func differing(want, got map[string]entry) (names []string) {
	for name, e := range want {
		if is, ok := got[name]; !ok || !reflect.DeepEqual(is, e) {
			names = append(names, "- "+name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			names = append(names, "+ "+name)
		}
	}
	return names
}

// TestWavesShareSyncs checks that a few syncs make any number of files durable,
// when a call changes them and when they are reverted.
func TestWavesShareSyncs(t *testing.T) {
	for name, do := range bulkOperations() {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			w.createFiles()
			w.createManyFiles()
			if !w.root.Features().SyncAll {
				t.Skip("no step syncs all here")
			}
			before := w.tree()
			count := func(syncs *map[string]int) func(string) error {
				*syncs = map[string]int{}
				return func(id string) error {
					(*syncs)[id]++
					return nil
				}
			}
			var done, undone map[string]int
			h := w.host()
			h.OnPoint = count(&done)
			require.NoError(t, w.do(h, do))
			h = w.host()
			h.OnPoint = count(&undone)
			rep, err := w.revertAs(t.Context(), h)
			require.NoError(t, err)
			require.Empty(t, rep.NotReverted())
			require.Equal(t, before, w.tree())
			for _, syncs := range []map[string]int{done, undone} {
				require.Zero(t, syncs["files.sync"])
				require.LessOrEqual(t, syncs["files.syncdir"], 17)
				require.LessOrEqual(t, syncs["files.syncall"], 3)
			}
			brings, makes := undone, done
			if name == "delete" {
				require.Zero(t, makes["files.syncall"])
				require.Positive(t, brings["files.syncall"])
			} else {
				require.Positive(t, makes["files.syncall"])
			}
		})
	}
}

// TestCrashesOfWaves kills the process at some point of a change of many files,
// of its revert, or of both. The next process restores everything.
func TestCrashesOfWaves(t *testing.T) {
	t.Parallel()
	states := 0
	for system, wrap := range systems() {
		for name, do := range bulkOperations() {
			t.Run(system+"/"+name, func(t *testing.T) {
				fresh := func() *testEnv {
					w := prepared(t, wrap)
					w.createManyFiles()
					return w
				}
				for n, more := start(t), true; more; n += statcheck.Stride(1009) {
					for m := 1 + n%statcheck.Stride(1511); ; m += statcheck.Stride(1511) {
						w := fresh()
						before := w.tree()
						c, d := &crash{left: n}, &crash{left: m}
						_ = w.do(c.on(w.host()), do)
						_, _ = w.revertAs(t.Context(), d.on(w.host()))
						rep := w.revert()
						states++
						about := fmt.Sprintf("died at point %d, then at %d (%s)", n, m, d.trace[len(d.trace)-1])
						require.Empty(t, rep.NotReverted(), about)
						require.Empty(t, differing(before, w.tree()), about)
						w.end()
						if more = c.ended; !d.ended {
							break
						}
					}
				}
			})
		}
	}
	t.Logf("%d states", states)
}

// unsynced is a root whose syncs fail from the n-th on.
type unsynced struct {
	disk.Root
	left *int
}

var errSync = errors.New("the disk is gone")

func (r unsynced) SyncAll() error {
	if *r.left--; *r.left < 0 {
		return errSync
	}
	return r.Root.SyncAll()
}

func (r unsynced) SyncDir(name string) error {
	if *r.left--; *r.left < 0 {
		return errSync
	}
	return r.Root.SyncDir(name)
}

// TestUndoThatIsNotDurable checks that a revert that could not sync is not
// reported as reverted, and that the next revert does it.
func TestUndoThatIsNotDurable(t *testing.T) {
	for n := range 6 {
		w := newTestEnv(t)
		w.createFiles()
		w.createManyFiles()
		if !w.root.Features().SyncAll {
			t.Skip("no step syncs all here")
		}
		before, whole := w.tree(), w.root
		require.NoError(t, w.do(w.host(), bulkOperations()["delete"]))
		w.root = unsynced{whole, &n}
		failed := n
		rep, err := w.revertAs(t.Context(), w.host())
		require.NoError(t, err)
		if n < 0 {
			require.NotEmpty(t, rep.NotReverted(), failed)
			require.Equal(t, revert.TxnRevertedPartial, rep.State)
			require.Contains(t, rep.NotReverted()[0].Why, errSync.Error())
		}
		w.root = whole
		require.Empty(t, w.revert().NotReverted())
		require.Equal(t, before, w.tree())
	}
}

// TestOneStepOfManyFails checks that the other steps are performed.
func TestOneStepOfManyFails(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	w.createManyFiles()
	before := w.tree()
	require.NoError(t, w.do(w.host(), bulkOperations()["delete"]))
	h := w.host()
	h.OnPoint = func(id string) error {
		if id == "revert.apply" { // after planning
			require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "crowd"), 0o755))
			w.put("crowd/f3", "theirs", 0o600)
		}
		return nil
	}
	rep, err := w.revertAs(t.Context(), h)
	require.NoError(t, err)
	var not []string
	for _, item := range rep.NotReverted() {
		require.Equal(t, effect.Conflict, item.Outcome, item.Why)
		not = append(not, item.Resource)
	}
	require.ElementsMatch(t, []string{"file://workspace/crowd", "file://workspace/crowd/f3"}, not)
	require.Equal(t, "theirs", w.read("crowd/f3"))
	after := w.tree()
	after["crowd/f3"] = before["crowd/f3"]
	require.Equal(t, before, after)
}

// TestBarred checks a directory that another process makes with more rights
// after the revert was planned. It gets none of the entries of the directory
// that the call removed.
func TestBarred(t *testing.T) {
	w := newTestEnv(t)
	w.createFiles()
	w.createManyFiles()
	require.NoError(t, w.do(w.host(), bulkOperations()["delete"]))
	h := w.host()
	open := filepath.Join(w.dir, "crowd")
	h.OnPoint = func(id string) error {
		if id == "revert.apply" { // after planning
			require.NoError(t, os.MkdirAll(open, 0o700))
			require.NoError(t, os.Chmod(open, 0o777)) //nolint:gosec // that is what is wrong
		}
		return nil
	}
	rep, err := w.revertAs(t.Context(), h)
	require.NoError(t, err)
	for _, item := range rep.NotReverted() {
		require.Equal(t, effect.Conflict, item.Outcome, item.Why)
	}
	require.Greater(t, len(rep.NotReverted()), 1)
	require.Contains(t, rep.NotReverted()[1].Why, "may give others access")
	found, err := os.ReadDir(open)
	require.NoError(t, err)
	require.Empty(t, found)
}
