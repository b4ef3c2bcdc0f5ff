package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// TestCodeThatReturnsLate checks that a tool can state its effects up to one
// second after its call was cancelled. The result must not depend on the
// scheduler of Go. The runtime does not wait for code that takes longer.
func TestCodeThatReturnsLate(t *testing.T) {
	for late, want := range map[time.Duration]error{0: tool.ErrCancelled, 900 * time.Millisecond: tool.ErrCancelled, time.Hour: tool.ErrUnknown} {
		t.Run(late.String(), inBubble(func(t *testing.T) {
			over := make(chan struct{})
			slow, err := tool.FromSpec(tool.Spec{
				Name: "slow", Description: "Takes its time to give up.", Input: json.RawMessage(`{"type":"object"}`),
				Needs: []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/**")},
				Execute: func(ctx context.Context, _ ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
					defer close(over)
					<-ctx.Done()
					time.Sleep(late)
					return tool.Result{}, tool.NoEffect(io.EOF)
				},
			})
			require.NoError(t, err)
			rt := newRuntime(t, agent.Tools(slow), agent.Root("workspace", t.TempDir()), agent.Policy(allowAll()))
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			began := time.Now()
			out, err := newSession(t, rt).Call(ctx, "slow", tool.Args{})
			require.ErrorIs(t, err, want, out.Text)
			require.Equal(t, time.Second+min(late, time.Second), time.Since(began))
			<-over
		}))
	}
}
