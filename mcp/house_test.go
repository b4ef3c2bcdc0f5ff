package mcp_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// The revisions that are tried: the newest of each way to talk.
const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

// routeByRevision runs a test once for each.
func routeByRevision(t *testing.T, fn func(t *testing.T, revision string)) {
	for _, revision := range []string{modern, legacy} {
		t.Run(revision, func(t *testing.T) { fn(t, revision) })
	}
}

// serverSetup is a runtime with a folder, and a server of its tools.
type serverSetup struct {
	t   *testing.T
	dir string
	rt  *agent.Runtime
	srv *mcp.Server
}

func newServerSetup(t *testing.T, opts mcp.Options, more ...agent.Option) *serverSetup {
	h := &serverSetup{t: t, dir: t.TempDir()}
	upper, err := tool.Create("upper", "Upper-case a text.", func(_ context.Context, in string) (string, error) {
		return strings.ToUpper(in), nil
	}, tool.Pure())
	require.NoError(t, err)
	h.rt, err = agent.New(append([]agent.Option{
		agent.Log(slog.New(slog.DiscardHandler)), agent.Root("workspace", h.dir), agent.Tools(upper), agent.Tools(builtin.Files()...),
	}, more...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.rt.Close()) })
	h.srv, err = mcp.New(h.rt, opts)
	require.NoError(t, err)
	return h
}

func (h *serverSetup) session(id string) *agent.Session {
	s, err := h.rt.Session(h.t.Context(), perm.Principal{ID: id}, agent.ClientProfile(perm.ClientFacts{Surface: mcp.Surface}))
	require.NoError(h.t, err)
	return s
}

// client connects one in memory, as a new session.
func (h *serverSetup) client(revision string, opts *sdk.ClientOptions) *sdk.ClientSession {
	return h.clientOf(revision, opts, h.session("coder"))
}

func (h *serverSetup) clientOf(revision string, opts *sdk.ClientOptions, in *agent.Session) *sdk.ClientSession {
	here, there := sdk.NewInMemoryTransports()
	done := make(chan error, 1)
	go func() { done <- h.srv.Run(context.WithoutCancel(h.t.Context()), there, in) }()
	cs := h.handshake(revision, opts, here)
	h.t.Cleanup(func() {
		require.NoError(h.t, cs.Close())
		<-done //nolint:errcheck // it says that the client left
	})
	return cs
}

// handshake connects a client. If the client handles changes of tools, the server reports all changes after handshake returns.
func (h *serverSetup) handshake(revision string, opts *sdk.ClientOptions, transport sdk.Transport) *sdk.ClientSession {
	if opts == nil {
		opts = &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opts)
	acknowledged := make(chan struct{}, 64)
	client.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				acknowledged <- struct{}{}
			}
			return next(ctx, method, req)
		}
	})
	cs, err := client.Connect(h.t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	require.NoError(h.t, err)
	require.Equal(h.t, revision, cs.InitializeResult().ProtocolVersion)
	if revision == modern && opts.ToolListChangedHandler != nil {
		receive(h.t, acknowledged) // the client does not wait for it
	}
	return cs
}

// receive returns the next value of a channel. It fails the test if none arrives.
func receive[T any](t testing.TB, values <-chan T) T {
	t.Helper()
	select {
	case v := <-values:
		return v
	case <-time.After(time.Minute):
		require.FailNow(t, "nothing arrived within a minute")
		panic("unreachable")
	}
}

// call calls a tool; an error of the protocol is none that a test expects.
func (h *serverSetup) call(cs *sdk.ClientSession, name string, args any, meta ...string) *sdk.CallToolResult {
	h.t.Helper()
	p := &sdk.CallToolParams{Name: name, Arguments: args}
	for i := 0; i < len(meta); i += 2 {
		if p.Meta == nil {
			p.Meta = sdk.Meta{}
		}
		p.Meta[meta[i]] = meta[i+1]
	}
	r, err := cs.CallTool(h.t.Context(), p)
	require.NoError(h.t, err)
	return r
}

func textOf(t *testing.T, r *sdk.CallToolResult) string {
	t.Helper()
	require.NotEmpty(t, r.Content)
	text, ok := r.Content[0].(*sdk.TextContent)
	require.True(t, ok, "%T", r.Content[0])
	return text.Text
}

// outcome is what a result says for programs of a call that was not done.
func outcome(t *testing.T, r *sdk.CallToolResult) (out struct {
	Status, Stage string
	Reasons       []perm.Reason
	Error         *tool.Problem
},
) {
	t.Helper()
	data, err := json.Marshal(r.Meta["remit.dev/outcome"])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

func (h *serverSetup) file(name string) string {
	data, err := os.ReadFile(h.dir + "/" + name)
	if os.IsNotExist(err) {
		return "(none)"
	}
	require.NoError(h.t, err)
	return string(data)
}

func replace(s, old, by string) string { return strings.ReplaceAll(s, old, by) }

// remitMeta is what an answer says in addition, such as its call.
func remitMeta(r interface{ GetMeta() map[string]any }, name string) string {
	text, _ := r.GetMeta()["remit.dev/"+name].(string)
	return text
}
