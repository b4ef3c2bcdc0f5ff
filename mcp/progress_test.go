package mcp_test

import (
	"context"
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/mcp/internal/trace"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// TestProgress: who asks for it is told how far its own call is, always further, and of the last step in any case.
func TestProgress(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		steps, err := tool.CreateWith("steps", "", nil, func(_ context.Context, tc ctxperm.ToolContext, in string) (string, error) {
			for _, done := range []float64{1, 2, 2, 1, 3} {
				tc.Progress(done, 3, in)
			}
			return "done", nil
		}, tool.Pure())
		require.NoError(t, err)
		h := newServerSetup(t, mcp.Options{}, agent.Tools(steps))
		var told []*sdk.ProgressNotificationParams
		last := make(chan struct{})
		cs := h.client(revision, &sdk.ClientOptions{
			Capabilities: &sdk.ClientCapabilities{},
			ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
				if told = append(told, req.Params); req.Params.Progress == 3 {
					close(last)
				}
			},
		})
		h.call(cs, "steps", tool.Args{"input": "nobody asked"})
		p := &sdk.CallToolParams{Name: "steps", Arguments: tool.Args{"input": "mine"}}
		p.SetProgressToken("p1")
		_, err = cs.CallTool(t.Context(), p)
		require.NoError(t, err)
		<-last
		before := 0.0
		for _, p := range told {
			require.Equal(t, "p1", p.ProgressToken)
			require.Equal(t, "mine", p.Message)
			require.Greater(t, p.Progress, before)
			before = p.Progress
		}
		require.EqualValues(t, 1, told[0].Progress)
	})
}

// TestCancel: a client that gives up ends its call.
func TestCancel(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		runs, ended := make(chan struct{}), make(chan error, 1)
		waits, err := tool.Create("waits", "", func(ctx context.Context, _ string) (string, error) {
			close(runs)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return "", ctx.Err()
		}, tool.Pure())
		require.NoError(t, err)
		h := newServerSetup(t, mcp.Options{}, agent.Tools(waits))
		in := h.session("coder")
		cs := h.clientOf(revision, nil, in)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-runs
			cancel()
		}()
		_, err = cs.CallTool(ctx, &sdk.CallToolParams{Name: "waits", Arguments: tool.Args{"input": "x"}})
		require.Error(t, err)
		require.Error(t, <-ended)
		require.Equal(t, "HI", textOf(t, h.call(cs, "upper", tool.Args{"input": "hi"})), "the connection goes on")
	})
}

// TestTrace: what a request belongs to, the call's code sees.
func TestTrace(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		traced, err := tool.Create("traced", "", func(ctx context.Context, _ string) (string, error) {
			meta := map[string]any{}
			trace.Into(ctx, meta)
			parent, _ := meta["traceparent"].(string)
			return parent, nil
		}, tool.Pure())
		require.NoError(t, err)
		h := newServerSetup(t, mcp.Options{}, agent.Tools(traced))
		r := h.call(h.client(revision, nil), "traced", tool.Args{"input": "x"}, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		require.Contains(t, textOf(t, r), "0af7651916cd43dd8448eb211c80319c")
	})
}

// TestContent: what a tool returns, by its kind.
func TestContent(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		type sum struct {
			Sum int `json:"sum"`
		}
		add, err := tool.CreateTyped("add", "Add.", nil, func(_ context.Context, _ ctxperm.ToolContext, in struct {
			A, B int
		},
		) (sum, error) {
			return sum{in.A + in.B}, nil
		}, tool.Pure())
		require.NoError(t, err)
		parts, err := tool.FromSpec(tool.Spec{
			Name: "parts", EffectClass: effect.Pure,
			Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
				return tool.Result{Text: "see", Parts: []tool.Part{
					{MediaType: "image/png", Data: []byte("png")},
					{MediaType: "audio/wav", Data: []byte("wav")},
					{MediaType: "text/plain; charset=utf-8", Data: []byte("plain")},
					{MediaType: "application/zip", Data: []byte("zip")},
				}}, nil
			},
		})
		require.NoError(t, err)
		h := newServerSetup(t, mcp.Options{}, agent.Tools(add, parts))
		cs := h.client(revision, nil)
		r := h.call(cs, "add", tool.Args{"A": 1, "B": 2})
		require.Equal(t, `{"sum":3}`, textOf(t, r))
		require.Equal(t, map[string]any{"sum": 3.0}, r.StructuredContent)

		r = h.call(cs, "parts", tool.Args{"input": "x"})
		require.Len(t, r.Content, 5)
		require.Equal(t, "see", textOf(t, r))
		require.Equal(t, "image/png", part[*sdk.ImageContent](t, r, 1).MIMEType)
		require.Equal(t, []byte("wav"), part[*sdk.AudioContent](t, r, 2).Data)
		require.Equal(t, "plain", part[*sdk.TextContent](t, r, 3).Text)
		require.Equal(t, []byte("zip"), part[*sdk.EmbeddedResource](t, r, 4).Resource.Blob)
		require.Nil(t, r.StructuredContent)
	})
}

func part[C sdk.Content](t *testing.T, r *sdk.CallToolResult, i int) C {
	t.Helper()
	c, ok := r.Content[i].(C)
	require.True(t, ok, "%T", r.Content[i])
	return c
}
