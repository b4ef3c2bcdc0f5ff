package agent_test

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestProgress: what a tool reports reaches the host, with the call that it is of,
// and nothing does once the call has ended.
func TestProgress(t *testing.T) {
	var kept ctxperm.ToolContext
	slow, err := tool.CreateWith("slow", "", nil, func(_ context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
		kept = tc
		tc.Progress(1, 3, "one")
		tc.Progress(math.NaN(), math.Inf(1), "no number")
		return "", nil
	}, tool.Pure())
	var mu sync.Mutex // never held across a wait
	var told []tool.Progress
	rt := newRuntime(t, agent.Tools(mustTool(t, slow, err)), agent.Tools(builtin.Files()...), agent.Root("workspace", t.TempDir()),
		agent.Policy(allowAll()), agent.OnProgress(func(p tool.Progress) {
			mu.Lock()
			told = append(told, p)
			mu.Unlock()
			panic("a listener that fails does not fail the call")
		}))
	tx := begin(t, newSession(t, rt))
	out, err := tx.Invoke(t.Context(), "slow", "x")
	require.NoError(t, err)
	kept.Progress(3, 3, "late")
	require.Equal(t, []tool.Progress{
		{Call: out.Call, Tool: "slow", Done: 1, Total: 3, Message: "one"},
		{Call: out.Call, Tool: "slow", Message: "no number"},
	}, told)

	told = nil
	var mine []tool.Progress
	_, err = tx.Invoke(t.Context(), "slow", "x", agent.OnCallProgress(func(p tool.Progress) { mine = append(mine, p) }))
	require.NoError(t, err)
	require.Len(t, mine, 2, "whoever asked about this call")
	require.Equal(t, told, mine, "beside whoever listens to all")

	told = nil
	out, err = tx.Invoke(t.Context(), "dir_create", tool.Args{"path": "a/b/c"})
	require.NoError(t, err)
	require.Equal(t, []tool.Progress{
		{Call: out.Call, Tool: "dir_create", Done: 1, Total: 3},
		{Call: out.Call, Tool: "dir_create", Done: 2, Total: 3},
		{Call: out.Call, Tool: "dir_create", Done: 3, Total: 3},
	}, told)
	require.Len(t, mine, 2, "and not about others")
}
