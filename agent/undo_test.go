package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

func workspace(t *testing.T) string {
	dir := t.TempDir()
	for name, content := range map[string]string{"a.txt": "alpha", "b.txt": "beta", "sub/c.txt": "gamma"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o640))
	}
	return dir
}

func invoke(t *testing.T, tx *agent.Txn, name string, args tool.Args) tool.Outcome {
	out, err := tx.Invoke(context.Background(), name, args)
	require.NoError(t, err)
	return out
}

func change(t *testing.T, tx *agent.Txn) {
	invoke(t, tx, "file_write", tool.Args{"path": "a.txt", "content": "changed"})
	invoke(t, tx, "file_edit", tool.Args{"path": "b.txt", "old": "et", "new": "ot"})
	invoke(t, tx, "file_delete", tool.Args{"path": "sub/c.txt"})
	invoke(t, tx, "file_write", tool.Args{"path": "new.txt", "content": "new", "mode": "0600"})
	invoke(t, tx, "file_write", tool.Args{"path": "a.txt", "content": "again"})
}

// TestEveryWayBack: whichever way a transaction is reverted, the tree is
// identical in bytes, modes and times of files.
func TestEveryWayBack(t *testing.T) {
	ctx := context.Background()
	boom := errors.New("boom")
	for name, run := range map[string]func(t *testing.T, rt *agent.Runtime, s *agent.Session){
		"revert while open": func(t *testing.T, _ *agent.Runtime, s *agent.Session) {
			tx := begin(t, s)
			change(t, tx)
			rep, err := tx.Revert(ctx, revert.Options{})
			require.NoError(t, err)
			require.Equal(t, revert.TxnReverted, rep.State)
		},
		"revert after commit": func(t *testing.T, _ *agent.Runtime, s *agent.Session) {
			tx := begin(t, s)
			change(t, tx)
			require.NoError(t, tx.Commit(ctx))
			_, err := s.Revert(ctx, tx.ID(), revert.Options{})
			require.NoError(t, err)
			again, err := s.Revert(ctx, tx.ID(), revert.Options{})
			require.NoError(t, err)
			require.Empty(t, again.Items, "twice equals once")
		},
		"update that fails": func(t *testing.T, _ *agent.Runtime, s *agent.Session) {
			_, err := s.Update(ctx, func(tx *agent.Txn) error {
				change(t, tx)
				return boom
			})
			require.ErrorIs(t, err, boom)
		},
		"update that panics": func(t *testing.T, _ *agent.Runtime, s *agent.Session) {
			require.PanicsWithValue(t, "no", func() {
				_, _ = s.Update(ctx, func(tx *agent.Txn) error {
					change(t, tx)
					panic("no")
				})
			})
		},
		"savepoint": func(t *testing.T, _ *agent.Runtime, s *agent.Session) {
			tx := begin(t, s)
			require.NoError(t, tx.Savepoint(ctx, "start"))
			change(t, tx)
			rep, err := tx.RevertTo(ctx, "start")
			require.NoError(t, err)
			require.Equal(t, revert.TxnOpen, rep.State)
			require.NoError(t, tx.Commit(ctx))
		},
		"by another runtime on the same journal": func(t *testing.T, rt *agent.Runtime, s *agent.Session) {
			tx := begin(t, s)
			change(t, tx)
			require.NoError(t, tx.Commit(ctx))
			other := newRuntime(t, agent.Tools(builtin.Files()...), agent.Journal(rt.Journal()))
			_, err := other.Revert(ctx, tx.ID(), revert.Options{})
			require.NoError(t, err, "the roots are found by the session's record")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workspace(t)
			before := tree(t, dir)
			j, err := sqlite.Open(ctx, t.TempDir())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, j.Close()) })
			rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Journal(j))
			run(t, rt, newSession(t, rt))
			require.Equal(t, before, tree(t, dir))
			open, err := rt.Journal().Unfinished(ctx)
			require.NoError(t, err)
			require.Empty(t, open)
		})
	}
}

func TestUndoOfTheUndo(t *testing.T) {
	ctx := context.Background()
	dir := workspace(t)
	before := tree(t, dir)
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
	s := newSession(t, rt)
	tx := begin(t, s)
	change(t, tx)
	require.NoError(t, tx.Commit(ctx))
	changed := tree(t, dir)
	for range 2 {
		_, err := s.Revert(ctx, tx.ID(), revert.Options{})
		require.NoError(t, err)
		require.Equal(t, before, tree(t, dir))
		rep, err := s.Redo(ctx, tx.ID())
		require.NoError(t, err)
		require.Equal(t, revert.TxnCommitted, rep.State)
		require.Equal(t, changed, tree(t, dir), "content, modes and times are those that the transaction left")
	}
}

func TestForeignChangeSurvivesRevert(t *testing.T) {
	ctx := context.Background()
	dir := workspace(t)
	before := tree(t, dir)
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
	s := newSession(t, rt)
	tx := begin(t, s)
	change(t, tx)
	require.NoError(t, tx.Commit(ctx))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.txt"), []byte("theirs"), 0o640))

	rep, err := s.Revert(ctx, tx.ID(), revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Equal(t, revert.TxnRevertedPartial, rep.State)
	require.Len(t, rep.NotReverted(), 1)
	left := rep.NotReverted()[0]
	require.Equal(t, "file://workspace/b.txt", left.Resource)
	require.Equal(t, effect.Conflict, left.Outcome)
	require.NotEmpty(t, left.Why)
	after := tree(t, dir)
	require.Contains(t, after["b.txt"], "theirs")
	delete(before, "b.txt")
	delete(after, "b.txt")
	require.Equal(t, before, after, "everything else is as before")
}

func TestSecondWriterIsTurnedAway(t *testing.T) {
	ctx := context.Background()
	dir := workspace(t)
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
	s := newSession(t, rt)
	one, two := begin(t, s), begin(t, s)
	invoke(t, one, "file_write", tool.Args{"path": "a.txt", "content": "one"})
	out, err := two.Invoke(ctx, "file_write", tool.Args{"path": "a.txt", "content": "two"})
	require.ErrorIs(t, err, tool.ErrFailed)
	require.Contains(t, out.Error.Why, one.ID(), "the holder is named")
	data, err := os.ReadFile(filepath.Join(dir, "a.txt"))
	require.NoError(t, err)
	require.Equal(t, "one", string(data))
	_, err = one.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	invoke(t, two, "file_write", tool.Args{"path": "a.txt", "content": "two"})
}

// TestFailedCallIsReverted checks that a failed confined call leaves no
// effect. If the runtime denies it an access, the call ends as denied, even if
// the tool returns a success.
func TestFailedCallIsReverted(t *testing.T) {
	ctx := context.Background()
	needs := []perm.ResourceAccess{{Action: perm.Write, Resource: "file://workspace/**"}}
	halfway := func(then func(context.Context, *handle.Files) error) tool.Tool {
		tl, err := tool.CreateWith("halfway", "", needs, func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
			f, err := handle.Open(tc, "workspace")
			if err != nil {
				return "", err
			}
			for _, name := range []string{"a.txt", "fresh.txt"} {
				if err := f.Write(ctx, name, []byte("half"), handle.WriteOptions{}); err != nil {
					return "", err
				}
			}
			return "fine", then(ctx, f)
		}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
		return mustTool(t, tl, err)
	}
	for _, tc := range []struct {
		name string
		then func(context.Context, *handle.Files) error
		want tool.Status
	}{
		{"error", func(context.Context, *handle.Files) error { return errors.New("boom") }, tool.StatusFailed},
		{"panic", func(context.Context, *handle.Files) error { panic("no") }, tool.StatusFailed},
		{"denied and swallowed", func(ctx context.Context, f *handle.Files) error {
			_ = f.Write(ctx, ".git/config", []byte("x"), handle.WriteOptions{})
			return nil
		}, tool.StatusDenied},
		{"beyond its needs and swallowed", func(ctx context.Context, f *handle.Files) error {
			_ = f.Delete(ctx, "b.txt")
			return nil
		}, tool.StatusDenied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := workspace(t)
			before := tree(t, dir)
			rt := newRuntime(t, agent.Tools(halfway(tc.then)), agent.Root("workspace", dir))
			tx := begin(t, newSession(t, rt))
			out, err := tx.Invoke(ctx, "halfway", "x")
			require.Error(t, err)
			require.Equal(t, tc.want, out.Status, "%+v", out.Error)
			require.Equal(t, "all", out.Reverted)
			require.Equal(t, before, tree(t, dir))
			require.NoError(t, tx.Commit(ctx))
			rep, err := rt.Revert(ctx, tx.ID(), revert.Options{})
			require.NoError(t, err)
			require.Empty(t, rep.Items, "nothing is left to revert")
		})
	}
}

func TestParallelCalls(t *testing.T) {
	ctx := context.Background()
	dir := workspace(t)
	before := tree(t, dir)
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
	tx := begin(t, newSession(t, rt))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			_, err := tx.Invoke(ctx, "file_write", tool.Args{"path": string(rune('f'+i)) + ".txt", "content": "x"})
			require.NoError(t, err)
		})
	}
	all.Wait()
	rep, err := tx.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	require.Len(t, rep.Items, 20)
	require.Equal(t, before, tree(t, dir))
	_, err = tx.Invoke(ctx, "file_read", tool.Args{"path": "a.txt"})
	require.ErrorIs(t, err, agent.ErrTxnEnded)
}

func TestStateInsideARootIsRefused(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	j, err := sqlite.Open(context.Background(), state)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	_, err = agent.New(quiet(), agent.Root("workspace", dir), agent.Journal(j))
	require.ErrorContains(t, err, "inside root")
	alias := filepath.Join(t.TempDir(), "alias")
	require.NoError(t, os.Symlink(dir, alias))
	_, err = agent.New(quiet(), agent.Root("workspace", alias), agent.Journal(j))
	require.ErrorContains(t, err, "inside root", "also by another name")
	_, err = agent.New(quiet(), agent.Root("workspace", filepath.Join(alias, "state", "blobs")), agent.Journal(j))
	require.ErrorContains(t, err, "lies inside the state folder")
}
