package crash_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// The versions of a file that two calls and then a person change.
const (
	mergeBefore = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
	mergePerson = "one\nTWO\nthree\nFOUR\nFOUR b\nfive\nsix\nmine\n"
	mergeResult = "one\ntwo\nthree\nfour\nfive\nsix\nmine\n"
)

// overwrite makes another actor write a file, durably.
func (w *simState) overwrite(name, content string) {
	r := w.disk.Root()
	if w.disk.Files()[name].Type != 0 {
		must(r.Remove(name))
	}
	f, err := r.Create(name, 0o644)
	must(err)
	_, err = io.WriteString(f, content)
	must(errors.Join(err, f.Sync(), f.Close(), r.SyncAll()))
}

// committedEdits returns a world with a committed transaction whose file a
// person changed later.
func committedEdits(t *testing.T) (*simState, string) {
	w := newSimState()
	w.overwrite("m.txt", mergeBefore)
	rt, ctx, err := w.process()
	require.NoError(t, err)
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	require.NoError(t, err)
	tx, err := s.Begin(ctx)
	require.NoError(t, err)
	for _, args := range []tool.Args{
		{"path": "m.txt", "content": "one\nTWO\nthree\nfour\nfive\nsix\nseven\n"},
		{"path": "m.txt", "content": "one\nTWO\nthree\nFOUR\nFOUR b\nfive\nsix\nseven\n"},
	} {
		out, err := tx.Invoke(ctx, "file_write", args)
		require.NoError(t, err)
		require.True(t, out.Status.OK())
	}
	require.NoError(t, tx.Commit(ctx))
	require.NoError(t, rt.Close())
	w.overwrite("m.txt", mergePerson)
	return w, tx.ID()
}

// mergeState is a world in a running process.
type mergeState struct {
	w  *simState
	at string
}

// during runs a step of a new process, and returns the world after each change.
func (w *simState) during(step func(ctx context.Context, rt *agent.Runtime) error) (all []mergeState, err error) {
	rt, ctx, err := w.process()
	if err != nil {
		return nil, err
	}
	w.watch(func(what string) { all = append(all, mergeState{w.clone(), what}) })
	err = step(ctx, rt)
	w.watch(nil)
	return all, errors.Join(err, rt.Close())
}

func revertComplete(txn string) func(ctx context.Context, rt *agent.Runtime) error {
	return func(ctx context.Context, rt *agent.Runtime) error {
		if _, err := rt.Recover(ctx); err != nil {
			return err
		}
		rep, err := rt.Revert(ctx, txn, revert.Options{})
		if err == nil && !rep.Complete() {
			err = fmt.Errorf("%+v is left", rep.NotReverted())
		}
		return err
	}
}

func redoComplete(txn string) func(ctx context.Context, rt *agent.Runtime) error {
	return func(ctx context.Context, rt *agent.Runtime) error {
		if _, err := rt.Recover(ctx); err != nil {
			return err
		}
		rep, err := rt.Redo(ctx, txn, "coder")
		if err == nil && !rep.Complete() {
			err = fmt.Errorf("%+v is left", rep.NotReverted())
		}
		return err
	}
}

// TestCrashOfMerge cuts a revert that merges after each write, with each cut,
// and again in the process that follows. Each state has the person's version or
// a merged one. The next revert completes the merge, and a redo restores the
// person's version exactly.
func TestCrashOfMerge(t *testing.T) {
	w, txn := committedEdits(t)
	states, seen := 0, map[digest]bool{}
	allowed := []string{mergePerson, "one\nTWO\nthree\nfour\nfive\nsix\nmine\n", mergeResult}
	var follow func(w *simState, depth int, way string)
	follow = func(w *simState, depth int, way string) {
		all, err := w.during(revertComplete(txn))
		require.NoError(t, err, way)
		require.Equal(t, mergeResult, w.disk.Files()["m.txt"].Content, way)
		require.Len(t, w.disk.Files(), len(before)+1, way)
		for n, m := range all {
			for _, c := range cutsOf(m.w) {
				if depth > 0 && (n+len(c.keep))%statcheck.Stride(11) != 0 {
					continue
				}
				cutWorld, way := m.w.clone(), fmt.Sprintf("%s %d %s, %s", way, n, m.at, c)
				c.happen(cutWorld)
				require.Contains(t, allowed, cutWorld.disk.Files()["m.txt"].Content, way)
				if d := cutWorld.digest(); seen[d] {
					continue
				} else {
					seen[d] = true
				}
				states++
				if depth == 0 {
					follow(cutWorld.clone(), 1, way)
				} else {
					_, err := cutWorld.during(revertComplete(txn))
					require.NoError(t, err, way)
					require.Equal(t, mergeResult, cutWorld.disk.Files()["m.txt"].Content, way)
				}
			}
		}
	}
	follow(w.clone(), 0, "revert")

	_, err := w.during(revertComplete(txn))
	require.NoError(t, err)
	again, err := w.clone().during(redoComplete(txn))
	require.NoError(t, err)
	for n, m := range again {
		for _, c := range cutsOf(m.w) {
			cutWorld, way := m.w.clone(), fmt.Sprintf("redo %d %s, %s", n, m.at, c)
			c.happen(cutWorld)
			require.Contains(t, allowed, cutWorld.disk.Files()["m.txt"].Content, way)
			states++
			_, err := cutWorld.during(redoComplete(txn))
			require.NoError(t, err, way)
			require.Equal(t, mergePerson, cutWorld.disk.Files()["m.txt"].Content, way)
		}
	}
	t.Logf("%d states", states)
}
