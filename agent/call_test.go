package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/tool"
)

// TestCallThatCannotBegin: what keeps a call from beginning is told as what it is, by Call as by Invoke, and the
// model is told the reason.
func TestCallThatCannotBegin(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	late, stop := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer stop()
	for _, tt := range []struct {
		name  string
		ctx   context.Context //nolint:containedctx // a case is about a context
		ends  func(t *testing.T, rt *agent.Runtime, s *agent.Session)
		want  tool.Status
		is    error
		stage string
		says  string
	}{
		{"revoked", context.Background(), func(t *testing.T, rt *agent.Runtime, s *agent.Session) {
			require.NoError(t, rt.Revoke(context.Background(), s.ID(), "boss", "done"))
		}, tool.StatusDenied, tool.ErrDenied, "grant", "was revoked by boss"},
		{"cancelled", over, nil, tool.StatusCancelled, tool.ErrCancelled, "", "context canceled"},
		{"too late", late, nil, tool.StatusTimeout, tool.ErrTimeout, "", "context deadline exceeded"},
		{"closed", context.Background(), func(t *testing.T, rt *agent.Runtime, _ *agent.Session) {
			require.NoError(t, rt.Close())
		}, tool.StatusInvalid, agent.ErrClosed, "", "the runtime is closed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ran := false
			rt, err := agent.New(quiet(), agent.Tools(pureTool(t, &ran)), agent.Policy(allowAll()))
			require.NoError(t, err)
			s := newSession(t, rt)
			tx := begin(t, s)
			if tt.ends != nil {
				tt.ends(t, rt, s)
			}
			out, err := s.Call(tt.ctx, "look", "a")
			require.Equal(t, tt.want, out.Status)
			require.Equal(t, tt.stage, out.Stage)
			require.ErrorIs(t, err, tt.is)
			require.Contains(t, out.Text, tt.says)
			out, err = tx.Invoke(tt.ctx, "look", "a")
			require.Equal(t, tt.want, out.Status, "in a transaction that was begun before")
			require.ErrorIs(t, err, tt.is)
			require.Contains(t, out.Text, tt.says)
			require.False(t, ran)
		})
	}
}

// pureTool is a tool that touches nothing, and says when it ran.
func pureTool(t *testing.T, ran *bool) tool.Tool {
	made, err := tool.CreateWith("look", "", nil, func(context.Context, ctxperm.ToolContext, string) (string, error) {
		*ran = true
		return "seen", nil
	}, tool.Pure())
	return mustTool(t, made, err)
}
