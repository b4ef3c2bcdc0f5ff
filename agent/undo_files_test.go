package agent_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestUndoOfRandomFiles makes random calls for some prompts over few files. It
// reverts random files of random prompts, redoes some of these reverts, and then
// reverts everything, newest prompt first. fileCheck judges each step by the
// files alone.
func TestUndoOfRandomFiles(t *testing.T) {
	for seed := range uint64(statcheck.Size(40, 2000)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			ctx, dir := t.Context(), workspace(t)
			j, err := sqlite.Open(ctx, t.TempDir())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, j.Close()) })
			rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Journal(j))
			s := newSession(t, rt)
			check := newFileCheck(t, dir)
			var prompts []string
			for i := range 2 + r.IntN(2) {
				tx, err := s.Begin(ctx, agent.ForPrompt(agent.Prompt{Client: "test", ID: fmt.Sprint("p-", i)}))
				require.NoError(t, err)
				for range 1 + r.IntN(4) {
					name, args := randomFileCall(r)
					_, _ = tx.Invoke(ctx, name, args) // a call that fails has no effect
				}
				require.NoError(t, tx.Commit(ctx))
				prompts = append(prompts, tx.ID())
			}
			for range 1 + r.IntN(5) {
				how := revert.Options{By: "ann", Cascade: r.IntN(4) == 0}
				txn, before := prompts[r.IntN(len(prompts))], check.look()
				for range 1 + r.IntN(2) {
					how.Resources = append(how.Resources, changedFile(t, r, rt, txn))
				}
				seen, err := rt.Preview(ctx, txn, how)
				require.NoError(t, err)
				rep, _ := rt.Revert(ctx, txn, how)
				require.NotEmpty(t, rep.State)
				check.partial(before, how.Resources, rep, seen)
				if rep.RevertTxn != "" && rep.Complete() && r.IntN(3) == 0 {
					_, err := rt.Redo(ctx, rep.RevertTxn, "ann")
					require.NoError(t, err)
					require.Equal(t, before, check.look(), "the redo of %v of %s", how.Resources, txn)
				}
			}
			for _, txn := range slices.Backward(prompts) {
				rep, err := rt.Revert(ctx, txn, revert.Options{By: "ann"})
				require.NoError(t, err, "%+v", rep.NotReverted())
			}
			require.Equal(t, check.start, check.look())
			open, err := j.Unfinished(ctx)
			require.NoError(t, err)
			require.Empty(t, open)
			found, err := revert.Fsck(ctx, j, revert.FsckOptions{})
			require.NoError(t, err)
			require.Empty(t, found.Problems)
		})
	}
}

// changedFile returns a file that a prompt changed, or sometimes any.
func changedFile(t *testing.T, r *rand.Rand, rt *agent.Runtime, txn string) string {
	loaded, err := rt.Load(t.Context(), txn)
	require.NoError(t, err)
	all := []string{"file://workspace/" + anyFile(r)}
	for _, c := range loaded.Calls {
		for _, ch := range c.Changes {
			all = append(all, ch.Resource)
		}
	}
	return all[r.IntN(len(all))]
}

func anyFile(r *rand.Rand) string {
	return []string{"a.txt", "b.txt", "sub/c.txt", "sub", "new", "new/x.txt"}[r.IntN(6)]
}

func randomFileCall(r *rand.Rand) (name string, args tool.Args) {
	switch r.IntN(6) {
	case 0:
		return "file_delete", tool.Args{"path": anyFile(r), "recursive": true}
	case 1:
		return "file_move", tool.Args{"from": anyFile(r), "to": anyFile(r)}
	case 2:
		return "file_copy", tool.Args{"from": anyFile(r), "to": anyFile(r)}
	default:
		return "file_write", tool.Args{"path": anyFile(r), "content": fmt.Sprint("content ", r.IntN(3)), "parents": true}
	}
}

// fileCheck judges reverts by the files in a folder. It knows nothing of how
// reverts are planned.
type fileCheck struct {
	t     *testing.T
	dir   string
	start map[string]string
}

func newFileCheck(t *testing.T, dir string) *fileCheck {
	c := &fileCheck{t: t, dir: dir}
	c.start = c.look()
	return c
}

func (c *fileCheck) look() map[string]string { return tree(c.t, c.dir) }

// partial checks a revert of some files: it changed only files that it was asked
// for or that the report names as restored, and none that the report names as
// left; the preview named the same files.
func (c *fileCheck) partial(before map[string]string, asked []string, rep, seen revert.Report) {
	c.t.Helper()
	after, outcome := c.look(), map[string]bool{}
	for _, i := range rep.PerResource().Items {
		outcome[strings.TrimPrefix(i.Resource, "file://workspace/")] = i.Outcome.Clean()
	}
	for _, name := range slices.Sorted(maps.Keys(union(before, after))) {
		clean, named := outcome[name]
		if before[name] != after[name] {
			require.True(c.t, named && clean, "%s changed, and the report of %v does not name it: %+v", name, asked, rep.Items)
		}
	}
	previewed := map[string]bool{}
	for _, i := range seen.Items {
		previewed[strings.TrimPrefix(i.Resource, "file://workspace/")] = true
	}
	for name := range outcome {
		require.True(c.t, previewed[name], "the preview of %v does not name %s", asked, name)
	}
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// TestUndoOfAFileWithWhatItNeeds checks what goes with a file: the folder that
// it was deleted with, and the other end of a move. A folder that a call made
// stays.
func TestUndoOfAFileWithWhatItNeeds(t *testing.T) {
	for name, tt := range map[string]struct {
		calls [][2]any
		file  string
		back  []string // paths that are as before
		stays []string // paths that are as the calls left them
	}{
		"a deleted folder": {
			calls: [][2]any{{"file_delete", tool.Args{"path": "sub", "recursive": true}}},
			file:  "sub/c.txt", back: []string{"sub", "sub/c.txt"}, stays: []string{"sub/d.txt"},
		},
		"the new name of a file": {
			calls: [][2]any{{"file_move", tool.Args{"from": "a.txt", "to": "n.txt"}}},
			file:  "n.txt", back: []string{"a.txt", "n.txt"},
		},
		"the old name of a file": {
			calls: [][2]any{{"file_move", tool.Args{"from": "a.txt", "to": "n.txt"}}, {"file_write", tool.Args{"path": "n.txt", "content": "more"}}},
			file:  "a.txt", back: []string{"a.txt", "n.txt"},
		},
		"a moved folder": {
			calls: [][2]any{{"file_move", tool.Args{"from": "sub", "to": "moved"}}},
			file:  "moved", back: []string{"sub", "sub/c.txt", "sub/d.txt", "moved", "moved/c.txt"},
		},
		"a new folder": {
			calls: [][2]any{{"file_write", tool.Args{"path": "n/x", "content": "x", "parents": true}}, {"file_write", tool.Args{"path": "n/y", "content": "y"}}},
			file:  "n/x", back: []string{"n/x"}, stays: []string{"n", "n/y"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, dir := t.Context(), workspace(t)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "d.txt"), []byte("delta"), 0o640))
			before := tree(t, dir)
			rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
			tx := begin(t, newSession(t, rt))
			for _, c := range tt.calls {
				invoke(t, tx, c[0].(string), c[1].(tool.Args)) //nolint:errcheck // of the table above
			}
			require.NoError(t, tx.Commit(ctx))
			after := tree(t, dir)
			rep, err := rt.Revert(ctx, tx.ID(), revert.Options{Resources: []string{"file://workspace/" + tt.file}})
			require.NoError(t, err)
			now := tree(t, dir)
			for _, path := range tt.back {
				require.Equal(t, before[path], now[path], path)
			}
			for _, path := range tt.stays {
				require.Equal(t, after[path], now[path], path)
			}
			_, err = rt.Redo(ctx, rep.RevertTxn, "ann")
			require.NoError(t, err)
			require.Equal(t, after, tree(t, dir))
			_, err = rt.Revert(ctx, tx.ID(), revert.Options{})
			require.NoError(t, err)
			require.Equal(t, before, tree(t, dir))
		})
	}
}

// TestUndoKeepsAFolderThatALaterUndoNeeds checks that the undo of a new folder
// keeps it if a later transaction deleted a file in it: that file has no other
// place to come back to.
func TestUndoKeepsAFolderThatALaterUndoNeeds(t *testing.T) {
	for name, resources := range map[string][]string{"all": nil, "the folder": {"file://workspace/n"}} {
		t.Run(name, func(t *testing.T) {
			ctx, dir := t.Context(), workspace(t)
			before := tree(t, dir)
			rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
			s := newSession(t, rt)
			first := begin(t, s)
			invoke(t, first, "file_write", tool.Args{"path": "n/x", "content": "x", "parents": true})
			require.NoError(t, first.Commit(ctx))
			second := begin(t, s)
			invoke(t, second, "file_delete", tool.Args{"path": "n/x"})
			require.NoError(t, second.Commit(ctx))
			after := tree(t, dir)

			seen, err := rt.Preview(ctx, first.ID(), revert.Options{Resources: resources})
			require.NoError(t, err)
			rep, err := rt.Revert(ctx, first.ID(), revert.Options{Resources: resources})
			require.Error(t, err)
			for _, r := range []revert.Report{seen, rep} {
				require.Len(t, r.NotReverted(), 2)
				require.Contains(t, r.NotReverted()[1].Why, second.ID()+" changed it later")
			}
			require.Equal(t, after, tree(t, dir))
			for _, txn := range []string{second.ID(), first.ID()} {
				_, err = rt.Revert(ctx, txn, revert.Options{})
				require.NoError(t, err)
			}
			require.Equal(t, before, tree(t, dir))
		})
	}
}
