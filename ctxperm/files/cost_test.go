package files_test

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// cost counts steps on disk and journal, bytes of files read and written, and
// entries of directories and of the journal read.
type cost struct{ steps, read, written, listed, entries int }

func (c cost) minus(o cost) cost {
	return cost{c.steps - o.steps, c.read - o.read, c.written - o.written, c.listed - o.listed, c.entries - o.entries}
}

// meter is a root and a journal that count.
type meter struct {
	disk.Root
	*cost
}

func (m meter) Open(name string) (disk.File, error) {
	f, err := m.Root.Open(name)
	return meteredFile{f, m.cost}, err
}

func (m meter) Create(name string, perm fs.FileMode) (disk.File, error) {
	f, err := m.Root.Create(name, perm)
	return meteredFile{f, m.cost}, err
}

func (m meter) ReadDir(name string) ([]disk.Info, error) {
	found, err := m.Root.ReadDir(name)
	m.listed += len(found)
	return found, err
}

type meteredFile struct {
	disk.File
	*cost
}

func (f meteredFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.read += n
	return n, err
}

func (f meteredFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written += n
	return n, err
}

type meteredJournal struct {
	journal.Journal
	*cost
}

func (j meteredJournal) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range j.Journal.Entries(ctx, q) {
			j.entries++
			if !yield(e, err) {
				return
			}
		}
	}
}

// adviseFolder is the irrelevant content beside the changed files: other files in the
// same folder and in other folders, and the history of the journal.
type adviseFolder struct{ files, history int }

// costs performs one action over n files of a test environment, reverts it, and returns
// the cost of each.
func costs(t *testing.T, n int, a adviseFolder, do func(context.Context, *files.Files, int) error) (done, undone cost) {
	w := newTestEnv(t)
	defer w.end()
	for i := range a.files {
		for _, dir := range []string{".", fmt.Sprintf("other%d", i%10)} {
			require.NoError(t, os.MkdirAll(filepath.Join(w.dir, dir), 0o755))
			w.put(filepath.Join(dir, fmt.Sprintf("beside%d", i)), long, 0o644)
		}
	}
	require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "mine"), 0o755))
	for i := range n {
		w.put(fmt.Sprintf("mine/f%03d", i), "some content\n", 0o644)
	}
	h := w.host()
	for i := range a.history {
		rec := revert.NewRecorder(w.journal, h, "s_1").In(fmt.Sprintf("t_old%d", i))
		own := journal.Ownership{Txn: rec.Txn(), Owner: w.journal.Owner()}
		require.NoError(t, rec.Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Body: &record.Begun{Owner: own.Owner}}}, Take: journal.OwnerChange{To: own}}))
		require.NoError(t, rec.Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Body: &record.Committed{}}}, End: true}))
	}
	var c cost
	w.root, w.journal = meter{w.root, &c}, meteredJournal{w.journal, &c}
	before := w.tree()
	h.OnPoint = func(string) error { c.steps++; return nil }
	require.NoError(t, w.do(h, func(ctx context.Context, f *files.Files) error {
		for i := range n {
			if err := do(ctx, f, i); err != nil {
				return err
			}
		}
		return nil
	}))
	done = c
	h = w.host()
	h.OnPoint = func(string) error { c.steps++; return nil }
	rep, err := w.revertAs(t.Context(), h)
	require.NoError(t, err)
	require.Empty(t, rep.NotReverted())
	require.Equal(t, before, w.tree())
	return done, c.minus(done)
}

// TestCostOfDepth checks that a change deep in a tree costs as many steps as
// one at the top.
func TestCostOfDepth(t *testing.T) {
	at := func(depth int) (done, undone int) {
		w := newTestEnv(t)
		defer w.end()
		dir := strings.TrimSuffix(strings.Repeat("d/", depth), "/")
		require.NoError(t, os.MkdirAll(filepath.Join(w.dir, dir), 0o755))
		w.put(dir+"/f", "some content\n", 0o644)
		if !disk.WithoutLinks(w.root).Features().Straight {
			t.Skip("the system follows links wherever they are")
		}
		h := w.host()
		h.OnPoint = func(string) error { done++; return nil }
		require.NoError(t, w.do(h, func(ctx context.Context, f *files.Files) error {
			return f.Write(ctx, dir+"/f", []byte("other content"), files.WriteOptions{})
		}))
		h = w.host()
		h.OnPoint = func(string) error { undone++; return nil }
		rep, err := w.revertAs(t.Context(), h)
		require.NoError(t, err)
		require.Empty(t, rep.NotReverted())
		return done, undone
	}
	done, undone := at(2)
	farDone, farUndone := at(200)
	require.Equal(t, done, farDone)
	require.Equal(t, undone, farUndone)
}

// TestCostOfUndo checks that the cost of a change and its revert grows only in
// proportion to the changed data. Other files and the history do not count.
func TestCostOfUndo(t *testing.T) {
	name := func(i int) string { return fmt.Sprintf("mine/f%03d", i) }
	for what, do := range map[string]func(context.Context, *files.Files, int) error{
		"write": func(ctx context.Context, f *files.Files, i int) error {
			return f.Write(ctx, name(i), []byte("other content"), files.WriteOptions{})
		},
		"edit": func(ctx context.Context, f *files.Files, i int) error {
			return f.Edit(ctx, name(i), "some", "any", false)
		},
		"chmod":  func(ctx context.Context, f *files.Files, i int) error { return f.Chmod(ctx, name(i), 0o600) },
		"delete": func(ctx context.Context, f *files.Files, i int) error { return f.Delete(ctx, name(i)) },
		"move":   func(ctx context.Context, f *files.Files, i int) error { return f.Move(ctx, name(i), name(i)+"x") },
		"copy":   func(ctx context.Context, f *files.Files, i int) error { return f.Copy(ctx, name(i), name(i)+"x") },
		"mkdir": func(ctx context.Context, f *files.Files, i int) error {
			return f.MkdirAll(ctx, fmt.Sprintf("mine/d%03d/e", i), 0)
		},
	} {
		t.Run(what, func(t *testing.T) {
			var do1, undo1 [3]cost
			for k := range 3 {
				do1[k], undo1[k] = costs(t, 4*(k+1), adviseFolder{}, do)
			}
			more, undone := costs(t, 4, adviseFolder{files: 60, history: 40}, do)
			require.Equal(t, do1[0], more, "what lies beside costs nothing")
			require.Equal(t, undo1[0], undone, "what lies beside costs nothing")
			require.Equal(t, do1[1].minus(do1[0]), do1[2].minus(do1[1]), "each further file costs the same")
			require.Equal(t, undo1[1].minus(undo1[0]), undo1[2].minus(undo1[1]), "each further file costs the same")
			t.Logf("of four files: %+v, to undo it: %+v", do1[1].minus(do1[0]), undo1[1].minus(undo1[0]))
		})
	}
}
