package agent_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/verify"
)

// TestUndoOfHandlesIsVerified: a Verify that found the effect of a call is asked
// whether it is gone, also where the versions of all resources say so: a tool that
// did more than its handles know of is told by it.
func TestUndoOfHandlesIsVerified(t *testing.T) {
	hidden := "an effect outside"
	sly, err := tool.CreateWith("sly", "", anyWrite(), puts("a.txt", func(context.Context, ctxperm.ToolContext, string) (string, error) {
		return "", nil
	}), append(confined(), tool.VerifyWith(func(context.Context, verify.Subject) verify.Verdict {
		if hidden != "" {
			return verify.Applied(hidden)
		}
		return verify.Absent()
	}))...)
	dir := t.TempDir()
	rt := newRuntime(t, agent.Tools(mustTool(t, sly, err)), agent.Root("workspace", dir), agent.Policy(allowAll()))
	before := tree(t, dir)
	s := newSession(t, rt)
	tx := begin(t, s)
	out, err := tx.Invoke(t.Context(), "sly", "text")
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))

	rep, err := s.Revert(t.Context(), tx.ID(), revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Equal(t, before, tree(t, dir))
	left := rep.NotReverted()
	require.Len(t, left, 1)
	require.Equal(t, "tool://sly", left[0].Resource)
	require.Equal(t, "each resource is as it was, but its Verify still finds the effect (applied): an effect outside", left[0].Why)
	txn, c, err := revert.LoadCall(t.Context(), rt.Journal(), out.Call)
	require.NoError(t, err)
	require.Equal(t, revert.TxnRevertedPartial, txn.State())
	require.False(t, c.Reversal.Verified.OK)

	rep, err = s.Revert(t.Context(), tx.ID(), revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert, "nothing is left to be done, and still it is not undone")
	require.Len(t, rep.NotReverted(), 1)

	hidden = ""
	rep, err = s.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err)
	require.Empty(t, rep.NotReverted())
	txn, c, err = revert.LoadCall(t.Context(), rt.Journal(), out.Call)
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, txn.State())
	require.True(t, c.Reversal.Verified.OK)
}

// TestLooksAreRecorded: each look at the world is on the journal with what was
// found and a digest of it, after the call and after its undo.
func TestLooksAreRecorded(t *testing.T) {
	dir := t.TempDir()
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
	s := newSession(t, rt)
	tx := begin(t, s)
	var calls []string
	for _, do := range []struct {
		tool string
		args tool.Args
	}{
		{"file_write", tool.Args{"path": "a.txt", "content": "one"}},
		{"file_write", tool.Args{"path": "a.txt", "content": "one", "mode": "0600"}},
		{"file_edit", tool.Args{"path": "a.txt", "old": "one", "new": "two"}},
		{"dir_create", tool.Args{"path": "d/e"}},
		{"file_copy", tool.Args{"from": "a.txt", "to": "d/b.txt"}},
		{"file_move", tool.Args{"from": "d", "to": "f"}},
		{"file_delete", tool.Args{"path": "f", "recursive": true}},
	} {
		out, err := tx.Invoke(t.Context(), do.tool, do.args)
		require.NoError(t, err)
		calls = append(calls, out.Call)
	}
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Empty(t, rep.NotReverted())
	for _, id := range calls {
		_, c, err := revert.LoadCall(t.Context(), rt.Journal(), id)
		require.NoError(t, err)
		require.Len(t, c.Verified, 1)
		for verdict, v := range map[string]record.Verified{"applied": c.Verified[0], "absent": *c.Reversal.Verified} {
			require.Equal(t, verdict, string(v.Presence), c.Tool.Name)
			require.True(t, v.OK)
			require.NotEmpty(t, v.Findings)
			require.Regexp(t, `^sha256:[0-9a-f]{64}$`, v.Evidence)
		}
		require.Equal(t, "call", c.Verified[0].Phase)
		require.Equal(t, "revert", c.Reversal.Verified.Phase)
	}
}
