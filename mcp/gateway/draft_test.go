package gateway_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway"
)

// TestDrafts: an entry is drafted from what a server says of a tool, marked as a draft, and never from nothing; it comes into the
// configuration beside what is there, and that can be read.
func TestDrafts(t *testing.T) {
	h := newHouse(t)
	h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": {"die": {"effectClass": "pivot"}}}}`)
	drafts := h.gateway.Drafts()
	said := map[string]string{}
	for _, d := range drafts {
		require.Equal(t, "s", d.Server)
		said[d.Tool] = string(d.Entry)
	}
	require.Equal(t, `{"draft":true,"effectClass":"pure"}`, said["get"])
	require.Equal(t, `{"draft":true,"effectClass":"pivot","idempotent":true}`, said["set"])
	require.Equal(t, `{"draft":true}`, said["hang"], "it says nothing of itself, and a call is denied")
	require.NotContains(t, said, "die")

	text, err := gateway.Write([]byte(h.config[:len(h.config)-1]+", /* mine */ }"), drafts)
	require.NoError(t, err)
	require.Contains(t, string(text), "/* mine */")
	c, err := gateway.Read("gateway.json", text, os.LookupEnv)
	require.NoError(t, err)
	require.Len(t, c.Servers[0].Tools, 15)
	require.True(t, c.Servers[0].Tools["get"].Draft)
	require.False(t, c.Servers[0].Tools["die"].Draft)
	require.Equal(t, []gateway.Ask{gateway.Elicitation}, c.Servers[0].Asks, "what holds where nobody says anything is said")

	own := []byte(`{"mcpServers": {"s": {"command": "x"}}, "remit": {"servers": {"s": {"asks": ["sampling"]}}}}`)
	text, err = gateway.Write(own, drafts)
	require.NoError(t, err)
	c, err = gateway.Read("gateway.json", text, os.LookupEnv)
	require.NoError(t, err)
	require.Equal(t, []gateway.Ask{gateway.Sampling}, c.Servers[0].Asks, "what somebody said stays")
}
