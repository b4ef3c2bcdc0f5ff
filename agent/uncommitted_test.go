package agent_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestReadSeesOpenTransactions: a call reads the world as it is, with what another open transaction wrote and may yet
// revert; only a second writer is refused.
func TestReadSeesOpenTransactions(t *testing.T) {
	ctx := context.Background()
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Policy(allowAll()), agent.Root("workspace", workspace(t)))
	first, second := begin(t, newSession(t, rt)), begin(t, newSession(t, rt))
	_, err := first.Invoke(ctx, "file_write", tool.Args{"path": "draft.txt", "content": "not committed"})
	require.NoError(t, err)
	out, err := second.Invoke(ctx, "file_read", tool.Args{"path": "draft.txt"})
	require.NoError(t, err)
	require.Contains(t, out.Text, "not committed")
	_, err = second.Invoke(ctx, "file_write", tool.Args{"path": "draft.txt", "content": "mine"})
	require.ErrorIs(t, err, tool.ErrFailed)
	require.ErrorContains(t, err, "is held by transaction "+first.ID())
	_, err = first.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	_, err = second.Invoke(ctx, "file_read", tool.Args{"path": "draft.txt"})
	require.ErrorIs(t, err, tool.ErrFailed, "what was read is gone, and nothing tells the reader")
}
