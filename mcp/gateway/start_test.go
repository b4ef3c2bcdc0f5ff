package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

const startTools = `{"good": {"tools": {"get": {"effectClass": "pure"}}}, "late": {"tools": {"x": {"effectClass": "pivot", "timeout": "1s"}}}}`

// withLongTimeouts gives servers all the time there is.
func withLongTimeouts(o *gateway.Options) { o.StartTimeout, o.Meet = time.Hour, time.Hour }

// hanging is an entry of a server that reads and never answers.
func (h *gatewaySetup) hanging() string { return h.scripted("initialize SILENCE") }

// state is how a server is.
func (h *gatewaySetup) stateOf(server string) gateway.ServerStatus {
	for _, s := range h.gateway.ServerStatuses() {
		if s.Server == server {
			return s
		}
	}
	h.t.Fatal("there is no server " + server)
	return gateway.ServerStatus{}
}

// TestOneServerThatHangs: the others are there, and what is pinned of it is listed, while it hangs. A call of it waits for as long as the
// call has, and says which server is not there, and why. What a session may call of a server does not depend on which of them was first.
func TestOneServerThatHangs(t *testing.T) {
	h := newGatewaySetup(t)
	h.put("store.json", `{"a":"1"}`)
	h.open(map[string]string{"good": h.server("store", nil), "late": h.scripted(oneTool)}, startTools)
	require.NoError(t, h.gateway.Close())

	h.config = strings.Replace(h.config, h.configOf("late"), h.hanging(), 1)
	h.behind = true
	told := make(chan struct{}, 16)
	h.begin(withLongTimeouts, func(o *gateway.Options) { o.OnToolsChanged = func([]tool.Tool) { told <- struct{}{} } })
	require.Contains(t, h.names(), "good__get")
	require.Contains(t, h.names(), "late__x", "what was accepted of it")
	early := h.session()
	h.gateway.Start()
	require.NoError(t, h.gateway.AwaitTool(t.Context(), "good__get"))
	tx, err := early.Begin(t.Context())
	require.NoError(t, err)
	out, err := tx.Invoke(t.Context(), "good__get", tool.Args{"key": "a"})
	require.NoError(t, err, out.Text)
	require.Equal(t, gateway.ServerStatus{Server: "late"}, h.stateOf("late"), "it hangs, and nobody has given it up")

	for out = h.call("late__x", tool.Args{}); out.Status == tool.StatusUnknown; { // the machine was so slow
		out = h.call("late__x", tool.Args{})
	}
	require.Equal(t, tool.StatusFailed, out.Status, out.Text)
	require.Contains(t, out.Error.Why, "server late cannot be reached: it was started")
	require.Contains(t, out.Error.Why, "and has not answered")
	require.Equal(t, gateway.ServerStatus{Server: "late"}, h.stateOf("late"), "a call that gives up does not end its start")
	require.Empty(t, told, "nothing is known that was not")
}

// configOf is the entry of a server, as it was written.
func (h *gatewaySetup) configOf(server string) string {
	_, entry, ok := strings.Cut(h.config, `"`+server+`": `)
	require.True(h.t, ok)
	end := strings.Index(entry, "}}")
	return entry[:end+2]
}

// TestFirstStart: of a server that nothing is known of there is nothing until it has answered; then it is told. A session that began before
// has it, and one that asks for one of its tools waits for it.
func TestFirstStart(t *testing.T) {
	h := newGatewaySetup(t)
	h.put("store.json", `{"a":"1"}`)
	h.behind = true
	told := make(chan struct{}, 16)
	h.open(map[string]string{"good": h.server("store", nil), "late": h.hanging()}, startTools, withLongTimeouts, func(o *gateway.Options) {
		set := o.OnToolsChanged
		o.OnToolsChanged = func(tools []tool.Tool) {
			set(tools)
			told <- struct{}{}
		}
	})
	require.Empty(t, h.names())
	early := h.session()
	h.gateway.Start()
	require.NoError(t, h.gateway.AwaitTool(t.Context(), "good__get"))
	receive(t, told)
	_, known := h.gateway.UpstreamTool("good__get")
	require.True(t, known)
	tx, err := early.Begin(t.Context())
	require.NoError(t, err)
	out, err := tx.Invoke(t.Context(), "good__get", tool.Args{"key": "a"})
	require.NoError(t, err, out.Text)

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.DeadlineExceeded)
	err = h.gateway.AwaitTool(ctx, "late__x")
	require.ErrorContains(t, err, "server late cannot be reached: it was started")
	require.ErrorContains(t, err, "and has not answered: context deadline exceeded")
	require.NoError(t, h.gateway.AwaitTool(ctx, "nobody__x"))
	h.gateway.AwaitNew(ctx) // which has waited for nothing
	require.NoError(t, h.gateway.Close())
	require.ErrorContains(t, h.gateway.AwaitTool(t.Context(), "late__x"), "server late cannot be reached: the gateway is closed")
}

// TestToolsComeFirst: a server that is told to be there is there with its tools, so that Await returns with all of them.
func TestToolsComeFirst(t *testing.T) {
	h := newGatewaySetup(t)
	h.behind = true
	telling, told := make(chan struct{}), make(chan struct{})
	h.open(map[string]string{"new": h.scripted(oneTool)}, `{"new": {"tools": {"x": {"effectClass": "pure"}}}}`, withLongTimeouts, func(o *gateway.Options) {
		o.OnToolsChanged = func([]tool.Tool) {
			close(telling)
			<-told
		}
	})
	h.gateway.Start()
	receive(t, telling)
	up := h.stateOf("new").Connected
	close(told)
	require.False(t, up)
	h.gateway.Await(t.Context())
	require.True(t, h.stateOf("new").Connected)
}

// TestAwaitNew: a list waits for servers that nothing was known of, no longer than it may, and for no others.
func TestAwaitNew(t *testing.T) {
	h := newGatewaySetup(t)
	h.behind = true
	h.open(map[string]string{"good": h.server("store", nil)}, `{"good": {"tools": {"get": {"effectClass": "pure"}}}}`, withLongTimeouts)
	h.gateway.AwaitNew(t.Context()) // before the start there is nothing to wait for
	require.Empty(t, h.names())
	h.gateway.Start()
	h.gateway.AwaitNew(t.Context())
	require.Contains(t, h.names(), "good__get")
	require.NoError(t, h.gateway.Close())

	h.config = strings.Replace(h.config, h.configOf("good"), h.hanging(), 1)
	h.begin(withLongTimeouts)
	h.gateway.Start()
	h.gateway.AwaitNew(t.Context())
	require.Equal(t, gateway.ServerStatus{Server: "good"}, h.stateOf("good"), "it was not waited for")
	require.NoError(t, h.gateway.Close())

	h.state = t.TempDir()
	h.begin(func(o *gateway.Options) { o.StartTimeout, o.Meet = time.Hour, time.Nanosecond })
	h.gateway.Start()
	h.gateway.AwaitNew(t.Context())
	require.Equal(t, gateway.ServerStatus{Server: "good"}, h.stateOf("good"), "the time was over")
}

// TestReserveIsNoTool: what has sessions hold what later tools need is seen by none, and called by none; what a session may hold is what
// its maker left of it.
func TestReserveIsNoTool(t *testing.T) {
	h := newGatewaySetup(t)
	h.behind = true
	h.open(map[string]string{"good": h.server("store", nil), "late": h.hanging()}, startTools, withLongTimeouts)
	require.Empty(t, h.names())
	out := h.call("good__mcp__server", tool.Args{})
	require.Equal(t, tool.StatusDenied, out.Status, out.Text)
	require.Contains(t, out.Error.Why, "it stands for all tools of the server good")
	s := h.session()
	require.True(t, s.Allows(perm.Access(perm.Call, "tool://good__get")))
	require.True(t, s.Allows(perm.Access(perm.Call, "mcp://good/get")))
	require.False(t, s.Allows(perm.Access(perm.Call, "mcp://other/get")))
	require.False(t, s.Allows(perm.Access(perm.Call, "tool://goods__get")))
}
