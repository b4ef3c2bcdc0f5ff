package gateway_test

import (
	"slices"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
)

const entries = `{"s": {"tools": {
	"get": {"effectClass": "pure", "destination": "configured"},
	"set": {"effectClass": "pivot", "errors": "no_effect", "needs": [{"action": "write", "resource": "file://workspace/{key}"}]},
	"die": {"effectClass": "pivot"},
	"half": {"effectClass": "pivot"}
}}}`

// TestCall: a tool of a server is asked for, runs, and its answer comes back as the server wrote it.
func TestCall(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, entries)
	out := h.call("s__set", tool.Args{"key": "a", "value": "1"})
	require.Equal(t, tool.StatusDone, out.Status, out.Text)
	require.Contains(t, h.asked[0], `run call {"kind":"mcp"`)
	require.Contains(t, h.asked[1], `run write {"kind":"file"`)
	require.JSONEq(t, `{"a":"1"}`, h.get("store.json"))

	out = h.call("s__get", tool.Args{"key": "a"})
	require.Equal(t, tool.StatusDone, out.Status, out.Text)
	require.Contains(t, string(out.Output), `"structuredContent":{"key":"a","value":"1"}`)

	out = h.call("s__get", tool.Args{"key": "b"})
	require.Equal(t, tool.StatusFailed, out.Status, "a tool that only reads has had no effect")
	require.Contains(t, out.Error.Why, "there is no b")
	out = h.call("s__half", tool.Args{})
	require.Equal(t, tool.StatusUnknown, out.Status, "what a tool did before it failed nobody can tell")

	got, ok := h.gateway.UpstreamTool("s__drop-key")
	require.True(t, ok)
	require.Equal(t, "s__drop_key", got)
}

// TestMayRequestClient: a server may ask a client that can answer, and nothing is known of tools that are of no server.
func TestMayRequestClient(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, entries)
	of := func(name string) tool.Tool {
		all := h.gateway.Tools()
		return all[slices.IndexFunc(all, func(t tool.Tool) bool { return t.Name() == name })]
	}
	require.True(t, h.gateway.MayRequestClient(of("s__get"), &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{}}))
	require.False(t, h.gateway.MayRequestClient(of("s__get"), &sdk.ClientCapabilities{}))
	require.True(t, h.gateway.MayRequestClient(tool.Tool{}, &sdk.ClientCapabilities{}))
}
