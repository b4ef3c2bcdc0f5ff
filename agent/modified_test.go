package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/tool"
)

// TestAnApprovalIsNotOfTheModifiedTool checks that approvals of the old tool do
// not count for a modified one. This includes remembered approvals.
func TestAnApprovalIsNotOfTheModifiedTool(t *testing.T) {
	ctx := t.Context()
	asks := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": "package remit\nask contains \"look\"\n"}})
	var said []string
	was := lampTool(t, &said, "1", "a", "old")
	is, err := was.Modify(func(s *tool.Spec) { s.Description = "new" })
	is = mustTool(t, is, err)
	rt := newRuntime(t, agent.Policy(asks), agent.SuspendForApproval(), agent.Tools(was))
	tx := begin(t, newSession(t, rt))
	out, err := tx.Invoke(ctx, "lamp", "x")
	require.ErrorIs(t, err, tool.ErrPending)
	_, err = rt.RememberApproval(ctx, agent.Answer{Call: out.Call, Approved: true, By: "kim"}, ctxperm.RememberScope{Always: true})
	require.NoError(t, err)
	require.NoError(t, rt.SetTools(is))
	_, err = tx.Resume(ctx, out.Call)
	require.ErrorIs(t, err, tool.ErrDenied)
	_, err = tx.Invoke(ctx, "lamp", "x")
	require.ErrorIs(t, err, tool.ErrPending, "it is asked about anew")
	require.Empty(t, said)
	require.NoError(t, rt.SetTools(was))
	_, err = tx.Invoke(ctx, "lamp", "x")
	require.NoError(t, err, "the control: for the old one it counts")
}
