package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/verify"
)

// committed runs one call in a transaction of its own.
func committed(t *testing.T, s *agent.Session, name string) (txn string) {
	id, err := s.Update(t.Context(), func(tx *agent.Txn) error {
		_, err := tx.Invoke(t.Context(), name, "agent's")
		return err
	})
	require.NoError(t, err)
	return id
}

// reservedCall is a Revert that counts how often it ran.
func reservedCall(n *int) tool.Option {
	return tool.RevertWith("1", func(context.Context, tool.RevertContext) error {
		*n++
		return nil
	})
}

func stateOf(t *testing.T, j journal.Journal, txn string) revert.TxnState {
	loaded, err := revert.Load(t.Context(), j, txn)
	require.NoError(t, err)
	return loaded.State()
}

// TestRevertWhereTheToolIsMissing: what only the tool knows how to revert is
// left and listed, and waits for the tool.
func TestRevertWhereTheToolIsMissing(t *testing.T) {
	for _, confinement := range []tool.Confinement{tool.Trusted, tool.Handles} {
		t.Run(string(confinement), func(t *testing.T) {
			ctx, dir, n := t.Context(), workspace(t), 0
			before := tree(t, dir)
			tl, err := tool.CreateWith("mixed", "", anyWrite(), puts("a.txt", returns("ok", nil)), tool.Effect(effect.Reversible), tool.Confined(confinement), reservedCall(&n))
			rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Root("workspace", dir), agent.Policy(allowAll()))
			id := committed(t, newSession(t, rt), "mixed")

			bare := newRuntime(t, agent.Root("workspace", dir), agent.Journal(rt.Journal()))
			for range 2 {
				rep, err := bare.Revert(ctx, id, revert.Options{})
				require.ErrorIs(t, err, agent.ErrPartialRevert)
				require.Equal(t, revert.TxnRevertedPartial, rep.State)
				require.Len(t, rep.NotReverted(), 1)
				require.Equal(t, "tool://mixed", rep.NotReverted()[0].Resource)
				require.Equal(t, effect.Failed, rep.NotReverted()[0].Outcome)
				require.Equal(t, revert.TxnRevertedPartial, stateOf(t, rt.Journal(), id))
				require.Equal(t, before, tree(t, dir), "what its handles did is undone")
			}
			rep, err := rt.Revert(ctx, id, revert.Options{})
			require.NoError(t, err)
			require.True(t, rep.Complete())
			require.Equal(t, 1, n)
			require.Equal(t, revert.TxnReverted, stateOf(t, rt.Journal(), id))
		})
	}
}

// TestRevertOfACallWithoutChanges: a confined call may have an effect that only
// its Revert knows, even where it changed nothing by itself.
func TestRevertOfACallWithoutChanges(t *testing.T) {
	noted, note := "", func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
		return "ok", tc.Note(ctx, "id", "ch_1")
	}
	tl, err := tool.CreateWith("pay", "", nil, note, tool.Effect(effect.Compensable), tool.Confined(tool.Handles),
		tool.RevertWith("1", func(_ context.Context, rc tool.RevertContext) error {
			noted = string(rc.Notes["id"])
			return nil
		}))
	rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()))
	tx := begin(t, newSession(t, rt))
	_, err = tx.Invoke(t.Context(), "pay", "in")
	require.NoError(t, err)
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Len(t, rep.Items, 1)
	require.Equal(t, `"ch_1"`, noted)
}

// TestRevertByTheNameOfTheUndo: an undo is not reverted; one that did not end
// stands for what it reverts.
func TestRevertByTheNameOfTheUndo(t *testing.T) {
	ctx, dir := t.Context(), workspace(t)
	before := tree(t, dir)
	fails, _ := nth(1, false, ofKind(record.KindReverting))
	tl, err := tool.CreateWith("put", "", anyWrite(), puts("a.txt", returns("ok", nil)), confined()...)
	rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Root("workspace", dir), agent.Policy(allowAll()), agent.Journal(newStore().open(fails)))
	s := newSession(t, rt)
	id := committed(t, s, "put")
	rep, err := s.Revert(ctx, id, revert.Options{})
	require.ErrorIs(t, err, errDisk)
	undo := rep.RevertTxn
	rep, err = s.Revert(ctx, undo, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{id, undo}, []string{rep.Txn, rep.RevertTxn})
	require.Equal(t, before, tree(t, dir))

	_, err = rt.Revert(ctx, undo, revert.Options{})
	require.ErrorIs(t, err, revert.ErrIsRevertTxn)
	require.Equal(t, before, tree(t, dir))
	require.Equal(t, revert.TxnReverted, stateOf(t, rt.Journal(), id))
}

// TestRetriedRevertDoesNotRunTheToolAgain: what an earlier attempt took back is
// not reverted twice because something else stood in its way.
func TestRetriedRevertDoesNotRunTheToolAgain(t *testing.T) {
	ctx, dir, n := t.Context(), workspace(t), 0
	tl, err := tool.CreateWith("mixed", "", anyWrite(), puts("a.txt", returns("ok", nil)), tool.Effect(effect.Compensable), reservedCall(&n))
	rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Root("workspace", dir), agent.Policy(allowAll()))
	id := committed(t, newSession(t, rt), "mixed")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("theirs"), 0o640))
	for range 2 {
		rep, err := rt.Revert(ctx, id, revert.Options{})
		require.ErrorIs(t, err, agent.ErrPartialRevert)
		require.Equal(t, "file://workspace/a.txt", rep.NotReverted()[0].Resource)
		require.Equal(t, 1, n)
	}
	require.Equal(t, "theirs", content(t, dir, "a.txt"))
}

// TestRevertThatDiesInItsOwnChange: a tool's Revert that changes files may die at
// any point of that; the next attempt leaves nothing half made.
func TestRevertThatDiesInItsOwnChange(t *testing.T) {
	ctx, dead := t.Context(), errors.New("the process is dead")
	for n := 1; ; n++ {
		dir, h := t.TempDir(), hosttest.New(1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "log.txt"), []byte("old"), 0o640))
		var armed atomic.Bool
		seen := 0
		h.OnPoint = func(string) error {
			if armed.Load() {
				if seen++; seen >= n {
					return dead
				}
			}
			return nil
		}
		tl, err := tool.CreateWith("pay", "", anyWrite(), returns("ok", nil), tool.Effect(effect.Compensable), tool.RevertWith("1", func(ctx context.Context, rc tool.RevertContext) error {
			f, err := handle.Open(rc.ToolContext(), "workspace")
			if err != nil {
				return err
			}
			return f.Write(ctx, "log.txt", []byte("refunded"), handle.WriteOptions{})
		}))
		rt := newRuntime(t, agent.Host(h), agent.Tools(mustTool(t, tl, err)), agent.Root("workspace", dir), agent.Policy(allowAll()))
		s := newSession(t, rt)
		id := committed(t, s, "pay")
		armed.Store(true)
		_, err = s.Revert(ctx, id, revert.Options{})
		armed.Store(false)
		died := seen >= n
		require.Equal(t, died, err != nil, "died at point %d", n)
		_, err = s.Revert(ctx, id, revert.Options{})
		require.NoError(t, err, "died at point %d", n)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1, "died at point %d: %v", n, entries)
		require.Equal(t, "refunded", content(t, dir, "log.txt"), "died at point %d", n)
		if !died {
			require.Greater(t, n, 20)
			return
		}
	}
}

// TestCancelledRevert: a caller who goes away ends a revert between two calls,
// never inside one.
func TestCancelledRevert(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	tl, err := tool.CreateWith("pay", "", nil, returns("ok", nil), tool.Effect(effect.Compensable), tool.RevertWith("1", func(ctx context.Context, _ tool.RevertContext) error {
		n++
		cancel()
		return ctx.Err()
	}))
	rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()))
	s := newSession(t, rt)
	tx := begin(t, s)
	for range 2 {
		_, err = tx.Invoke(ctx, "pay", "in")
		require.NoError(t, err)
	}
	require.NoError(t, tx.Commit(ctx))
	rep, err := s.Revert(ctx, tx.ID(), revert.Options{})
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, rep.Complete())
	require.Equal(t, 1, n)
	txn, err := revert.Load(t.Context(), rt.Journal(), tx.ID())
	require.NoError(t, err)
	require.True(t, txn.Calls[1].IsReverted(), "what was begun is finished")
	require.Nil(t, txn.Calls[0].Reversal)
	rep, err = s.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err)
	require.Len(t, rep.Items, 1)
	require.Equal(t, 2, n)
}

// TestReportWithAnErrorIsNotComplete makes each append of a revert fail in
// turn. The report of a failed revert is never complete.
func TestReportWithAnErrorIsNotComplete(t *testing.T) {
	ctx, armed := t.Context(), false
	for n := 1; ; n++ {
		dir, s := workspace(t), newStore()
		fails, failed := nth(n, false, func(journal.Batch) bool { return armed })
		rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Journal(s.open(fails)))
		session := newSession(t, rt)
		tx := begin(t, session)
		change(t, tx)
		require.NoError(t, tx.Commit(ctx))
		armed = true
		rep, err := session.Revert(ctx, tx.ID(), revert.Options{})
		armed = false
		require.Equal(t, failed(), err != nil)
		require.Equal(t, err == nil, rep.Complete(), "append %d", n)
		if !failed() {
			require.Greater(t, n, 5)
			return
		}
		// The undo that is left unfinished is finished, and then holds nothing.
		_, err = session.Revert(ctx, tx.ID(), revert.Options{})
		require.NoError(t, err, "append %d", n)
		open, err := s.mem.Unfinished(ctx)
		require.NoError(t, err)
		require.Empty(t, open, "append %d", n)
		invoke(t, begin(t, session), "file_write", tool.Args{"path": "a.txt", "content": "next"})
	}
}

// TestPartialEffectIsNoSuccess: recovery says of a call whose effect is half
// there exactly that.
func TestPartialEffectIsNoSuccess(t *testing.T) {
	ctx, s := t.Context(), newStore()
	tl, err := tool.CreateWith("send", "", nil, returns("ok", nil), tool.Effect(effect.Pivot), says(verify.Partial("half of it")))
	fails, _ := nth(1, true, ofKind(record.KindDone))
	j := s.open(fails)
	rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Journal(j), agent.Policy(allowAll()))
	out, err := begin(t, newSession(t, rt)).Invoke(ctx, "send", "in")
	require.ErrorIs(t, err, tool.ErrUnknown)
	require.NoError(t, j.Close())
	next := newRuntime(t, agent.Tools(tl), agent.Journal(s.open(nil)))
	found, err := next.Recover(ctx)
	require.NoError(t, err)
	require.Len(t, found.Settled, 1)
	_, c, err := revert.LoadCall(ctx, s.mem, out.Call)
	require.NoError(t, err)
	verdict, ok := c.Verdict().Get()
	require.True(t, ok)
	require.Equal(t, effect.PresencePartial, verdict.Presence)
	require.False(t, verdict.OK)
}

// TestUpdateThatIsLeft: what fn returned decides, not what became of its caller;
// fn that does not return at all has failed.
func TestUpdateThatIsLeft(t *testing.T) {
	dir := workspace(t)
	before := tree(t, dir)
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
	s := newSession(t, rt)
	var id string
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = s.Update(t.Context(), func(tx *agent.Txn) error {
			id = tx.ID()
			change(t, tx)
			runtime.Goexit()
			return nil
		})
	}()
	<-left
	require.Equal(t, revert.TxnReverted, stateOf(t, rt.Journal(), id))
	require.Equal(t, before, tree(t, dir))

	ctx, cancel := context.WithCancel(t.Context())
	id, err := s.Update(ctx, func(tx *agent.Txn) error {
		change(t, tx)
		cancel()
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, revert.TxnCommitted, stateOf(t, rt.Journal(), id))
}
