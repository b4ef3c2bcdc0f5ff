package mcp_test

import (
	"context"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// asksInside is a policy that asks about what a running call of "late" asks for.
func asksInside(_ context.Context, r perm.Request) (perm.Decision, error) {
	if r.Access.Dynamic {
		return perm.NewDecision(perm.Ask, perm.Details{Reasons: []perm.Reason{{Text: "it asks late", Set: "ask"}}}), nil
	}
	return perm.NewDecision(perm.Allow, perm.Details{}), nil
}

// newLate is a house with a tool whose calls have begun when they ask.
func newLate(t *testing.T) *serverSetup {
	t.Helper()
	late, err := tool.CreateWith("late", "Asks late.", []perm.ResourceAccess{perm.Access(perm.Use, "secret://*")}, func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
		p, err := ctxperm.Authorize(ctx, tc, perm.Access(perm.Use, "secret://key"))
		p.End()
		return "used", tool.NoEffect(err)
	}, tool.Effect(effect.Pivot))
	require.NoError(t, err)
	return newServerSetup(t, mcp.Options{}, agent.SuspendForApproval(), agent.Policy(perm.EngineFunc(asksInside)), agent.Tools(late))
}

// TestElicitInside: the person at the client is asked about what a running call asks for, in the way of each revision, and what they
// say counts.
func TestElicitInside(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		for name, tt := range map[string]struct {
			said   *sdk.ElicitResult
			status string
		}{
			"yes":      {yes(), "done"},
			"no":       {&sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": false}}, "denied"},
			"declined": {&sdk.ElicitResult{Action: "decline"}, "denied"},
		} {
			t.Run(name, func(t *testing.T) {
				h := newLate(t)
				var asked []string
				r := h.call(h.client(revision, answers(&asked, tt.said)), "late", letterInput)
				require.Equal(t, tt.status, r.Meta["remit.dev/status"], textOf(t, r))
				require.Len(t, asked, 1)
				for _, part := range []string{"asks to run late", "use secret://key", "it asks late", "Dear customer"} {
					require.Contains(t, asked[0], part)
				}
				_, c, err := revert.LoadCall(t.Context(), h.rt.Journal(), remitMeta(r, "call"))
				require.NoError(t, err)
				require.True(t, c.Asked.During)
				require.Equal(t, "person at test", c.Answered.By)
				require.Len(t, c.Approvals, map[string]int{"done": 1}[tt.status])
			})
		}
	})
}

// TestApprovalBroughtAlong: an answer that comes with the call approves nothing that the call asks for later.
func TestApprovalBroughtAlong(t *testing.T) {
	h := newLate(t)
	r, err := h.client(modern, asks()).CallTool(t.Context(), &sdk.CallToolParams{Name: "late", Arguments: letterInput, InputResponses: sdk.InputResponseMap{"approval": yes()}})
	require.NoError(t, err)
	require.True(t, r.NeedsInput(), "the person is asked")
}
