package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestDrafts: an entry is drafted from what a server says of a tool, marked as a draft, and never from nothing; it comes into the
// configuration beside what is there, and that can be read.
func TestDrafts(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": {"die": {"effectClass": "pivot"}}}}`)
	drafts := h.gateway.Drafts()
	said := map[string]string{}
	for _, d := range drafts {
		require.Equal(t, "s", d.Server)
		said[d.Tool] = string(d.Entry)
	}
	require.Equal(t, `{"draft":true,"effectClass":"pure","roles":{"/key":"authority"}}`, said["get"])
	require.Equal(t, `{"draft":true,"effectClass":"pivot","destination":"none","idempotent":true,"roles":{"/key":"authority"}}`, said["set"])
	require.Equal(t, `{"draft":true,"effectClass":"pivot"}`, said["hang"], "it says nothing of itself, and a person is asked")
	require.NotContains(t, said, "die")

	text, err := config.AddEntries([]byte(h.config[:len(h.config)-1]+", /* mine */ }"), drafts)
	require.NoError(t, err)
	require.Contains(t, string(text), "/* mine */")
	c, err := config.Parse("gateway.json", text, os.LookupEnv)
	require.NoError(t, err)
	require.Len(t, c.Servers[0].Tools, 15)
	require.True(t, c.Servers[0].Tools["get"].Draft)
	require.False(t, c.Servers[0].Tools["die"].Draft)
	require.Equal(t, []config.ClientFeature{config.Elicitation}, c.Servers[0].ClientFeatures, "what holds where nobody says anything is said")

	own := []byte(`{"mcpServers": {"s": {"command": "x"}}, "remit": {"servers": {"s": {"asks": ["sampling"]}}}}`)
	same, err := config.AddEntries(text, nil)
	require.NoError(t, err, "there may be nothing to draft")
	require.Equal(t, string(text), string(same))
	text, err = config.AddEntries(own, drafts)
	require.NoError(t, err)
	c, err = config.Parse("gateway.json", text, os.LookupEnv)
	require.NoError(t, err)
	require.Equal(t, []config.ClientFeature{config.Sampling}, c.Servers[0].ClientFeatures, "what somebody said stays")
}

// TestDraftsThatKeep: every tool has the workspace kept before each call, whatever it says of itself, and is never drafted as reversible. A
// server that moves to the sandbox needs none of that.
func TestDraftsThatKeep(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, "")
	drafts := h.gateway.Drafts("workspace")
	said := map[string]string{}
	for _, d := range drafts {
		said[d.Tool] = string(d.Entry)
	}
	require.Equal(t, `{"draft":true,"effectClass":"pure","undo":{"snapshot":["file://workspace/**"]},"roles":{"/key":"authority"}}`, said["get"], "its word does not keep it from writing")
	require.Equal(t, `{"draft":true,"effectClass":"pivot","destination":"none","idempotent":true,"undo":{"snapshot":["file://workspace/**"]},"roles":{"/key":"authority"}}`, said["set"])
	require.Equal(t, `{"draft":true,"effectClass":"pivot","undo":{"snapshot":["file://workspace/**"]}}`, said["hang"], "it says nothing of itself, and a person is asked")

	text, err := config.AddEntries([]byte(h.config), drafts)
	require.NoError(t, err)
	require.NoError(t, h.gateway.Close())
	h.config = string(text)
	h.begin()
	h.put("store.json", `{"a":"1"}`)
	tx := h.txn()
	out, err := tx.Invoke(t.Context(), "s__set", tool.Args{"key": "a", "value": "2"})
	require.NoError(t, err)
	require.Contains(t, h.get("store.json"), `"2"`)
	require.NotEmpty(t, out.Changes)
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.Error(t, err)
	require.Len(t, unknownElsewhere(rep), 1, "it may have written elsewhere, too")
	require.Equal(t, `{"a":"1"}`, h.get("store.json"))

	boxed, err := config.Parse("gateway.json", []byte(strings.Replace(h.config, `"asks"`, `"sandbox": {"roots": ["workspace"]}, "asks"`, 1)), os.LookupEnv)
	require.NoError(t, err)
	require.NotNil(t, boxed.Servers[0].Sandbox)
	require.Empty(t, boxed.Servers[0].Tools["set"].Snapshot)
	require.Empty(t, boxed.Servers[0].Tools["set"].Class)
}

// TestDraftsOfWhatIsElsewhere: what a server by URL writes is not in a folder of this machine.
func TestDraftsOfWhatIsElsewhere(t *testing.T) {
	h := newGatewaySetup(t)
	server := sdk.NewServer(&sdk.Implementation{Name: "far", Version: "1"}, nil)
	no := false
	sdk.AddTool(server, &sdk.Tool{Name: "set", Annotations: &sdk.ToolAnnotations{DestructiveHint: &no}}, func(context.Context, *sdk.CallToolRequest, pairInput) (*sdk.CallToolResult, any, error) {
		return nil, nil, nil
	})
	listener := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(listener.Close)
	h.open(map[string]string{"far": fmt.Sprintf(`{"type": "http", "url": %q}`, listener.URL)}, "")
	drafts := h.gateway.Drafts("workspace")
	require.Len(t, drafts, 1)
	require.Equal(t, `{"draft":true,"effectClass":"pivot","roles":{"/key":"authority"}}`, string(drafts[0].Entry))
}
