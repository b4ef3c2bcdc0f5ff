package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// mirror has one tool of another server.
type mirror struct{ object string }

func (m mirror) UpstreamDefinition(t tool.Tool) (json.RawMessage, bool) {
	return json.RawMessage(m.object), t.Name() == "far_echo"
}

func (m mirror) UpstreamTool(name string) (string, bool) { return "far_echo", name == "Far__Echo.It" }

// echo answers with the result object that is its input, as another server wrote it.
func echo(t *testing.T) tool.Tool {
	far, err := tool.FromSpec(tool.Spec{
		Name: "far_echo", Input: json.RawMessage(`{"type":"object"}`), EffectClass: effect.Pure,
		Execute: func(ctx context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			var args struct {
				Result string `json:"result"`
			}
			if err := json.Unmarshal(in, &args); err != nil {
				return tool.Result{}, err
			}
			rawresult.Leave(ctx, json.RawMessage(args.Result))
			return rawresult.Result(json.RawMessage(args.Result), "what it said", nil), nil
		},
	})
	require.NoError(t, err)
	return far
}

// TestMirror: a tool of another server is listed, called and answered as there, but for its name.
func TestMirror(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		m := mirror{`{"name":"Far__Echo.It","title":"Echo","inputSchema":{"type":"object","x-own":1},"annotations":{"readOnlyHint":true},"_meta":{"a":1}}`}
		h := newServerSetup(t, mcp.Options{Mirror: m, NoTransactions: true}, agent.Tools(echo(t)))
		cs := h.client(revision, nil)
		list, err := cs.ListTools(t.Context(), nil)
		require.NoError(t, err)
		i := slices.IndexFunc(list.Tools, func(l *sdk.Tool) bool { return l.Name == "Far__Echo.It" })
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, map[string]any{"type": "object", "x-own": 1.0}, list.Tools[i].InputSchema)
		require.Equal(t, sdk.Meta{"a": 1.0}, list.Tools[i].Meta)

		for _, result := range []string{
			`{"content":[{"type":"text","text":"a<b"},{"type":"resource_link","uri":"file:///x","name":"x"}],"structuredContent":[1,2.50],"_meta":{"own":true},"resultType":"complete"}`,
			`{"content":[{"type":"text","text":"it failed"}],"structuredContent":{"code":7},"isError":true}`,
		} {
			r := h.call(cs, "Far__Echo.It", tool.Args{"result": result})
			var want sdk.CallToolResult
			require.NoError(t, json.Unmarshal([]byte(result), &want))
			require.Equal(t, want.Content, r.Content)
			require.Equal(t, want.StructuredContent, r.StructuredContent)
			require.Equal(t, want.IsError, r.IsError)
			require.Equal(t, want.Meta["own"], r.Meta["own"])
			require.NotEmpty(t, r.Meta["remit.dev/call"])
		}
		_, err = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "far_echo", Arguments: tool.Args{"result": "{}"}})
		var fault *jsonrpc.Error
		require.ErrorAs(t, err, &fault, "it has one name here")
	})
}

// late is a mirror whose server answers when a list or a call waits for it.
type late struct {
	mirror

	there *atomic.Bool
}

func (l late) UpstreamDefinition(t tool.Tool) (json.RawMessage, bool) {
	if !l.there.Load() {
		return nil, false
	}
	return l.mirror.UpstreamDefinition(t)
}

func (l late) UpstreamTool(name string) (string, bool) {
	if !l.there.Load() {
		return "", false
	}
	return l.mirror.UpstreamTool(name)
}

func (l late) AwaitNew(context.Context) { l.there.Store(true) }

func (l late) AwaitTool(_ context.Context, name string) error {
	if name == "Gone__it" {
		return errors.New("the server Gone has not answered")
	}
	l.there.Store(true)
	return nil
}

// TestAwaiter: a list and a call wait for a server that has not answered yet, and the error of a call says why the server is not there.
func TestAwaiter(t *testing.T) {
	routeByRevision(t, func(t *testing.T, revision string) {
		m := late{mirror{`{"name":"Far__Echo.It","inputSchema":{"type":"object"}}`}, &atomic.Bool{}}
		h := newServerSetup(t, mcp.Options{Mirror: m, NoTransactions: true}, agent.Tools(echo(t)))
		cs := h.client(revision, nil)
		list, err := cs.ListTools(t.Context(), nil)
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(list.Tools, func(l *sdk.Tool) bool { return l.Name == "Far__Echo.It" }))

		m.there.Store(false)
		r := h.call(cs, "Far__Echo.It", tool.Args{"result": `{"content":[{"type":"text","text":"hi"}]}`})
		require.Equal(t, "hi", textOf(t, r))

		r = h.call(cs, "Gone__it", tool.Args{})
		require.True(t, r.IsError)
		require.Contains(t, textOf(t, r), "the server Gone has not answered")
	})
}

// TestMirrorHidden: what the policy hides of a call is in no error of another server either.
func TestMirrorHidden(t *testing.T) {
	engine, err := rego.New(rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": "package remit\nallow contains \"all\"\nredact contains \"/output/structuredContent\"\n"}})
	require.NoError(t, err)
	h := newServerSetup(t, mcp.Options{Mirror: mirror{`{"name":"Far__Echo.It","inputSchema":{"type":"object"}}`}}, agent.Tools(echo(t)), agent.Policy(engine))
	r := h.call(h.client(modern, nil), "Far__Echo.It", tool.Args{"result": `{"content":[],"structuredContent":{"pin":"1234567"},"isError":true}`})
	require.True(t, r.IsError)
	require.Nil(t, r.StructuredContent)
	require.NotContains(t, textOf(t, r), "1234567")
}
