package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
)

// TestByURL: a server that is reached by URL, in the newest revision and in the older one, with the headers of the configuration.
func TestByURL(t *testing.T) {
	for name, stateless := range map[string]bool{"2026-07-28": true, "2025-11-25": false} {
		for _, plain := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/json=%t", name, plain), func(t *testing.T) {
				server := sdk.NewServer(&sdk.Implementation{Name: "far"}, nil)
				type in struct {
					Text string `json:"text"`
				}
				sdk.AddTool(server, &sdk.Tool{Name: "echo"}, func(_ context.Context, r *sdk.CallToolRequest, in in) (*sdk.CallToolResult, any, error) {
					return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: r.ProtocolVersion() + " " + in.Text}}}, nil, nil
				})
				handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: stateless, JSONResponse: plain})
				var strangers atomic.Int64
				listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-Key") != "k" {
						strangers.Add(1)
					}
					handler.ServeHTTP(w, r)
				}))
				t.Cleanup(listener.Close) // once the gateway has left
				h := newGatewaySetup(t)
				h.open(map[string]string{"far": fmt.Sprintf(`{"type": "http", "url": %q, "headers": {"X-Key": "k"}}`, listener.URL)}, `{"far": {"tools": {"echo": {"effectClass": "pure"}}}}`)
				out := h.call("far__echo", tool.Args{"text": "hi"})
				require.Equal(t, tool.StatusDone, out.Status, "%s %v", out.Text, h.gateway.ServerStatuses())
				require.Contains(t, string(out.Output), name+" hi")
				require.Zero(t, strangers.Load())
				require.NoError(t, h.gateway.Close())
			})
		}
	}
}

// TestByStream: a server of the transport that the revision 2024-11-05 has.
func TestByStream(t *testing.T) {
	server := newRequestingServer("")
	handler := sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil)
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close) // once the gateway has left
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": fmt.Sprintf(`{"type": "sse", "url": %q}`, listener.URL)}, requestingTools)
	cs := h.client(h.serve(), modern, "Ann", func(string) {})
	for tool, want := range map[string]string{"echo": "w", "person": "w: accept Ann"} {
		got, err := ask(t.Context(), cs, tool, "w")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.NoError(t, h.gateway.Close())
}

// TestRedirect: a server that sends elsewhere is not followed: what its headers hold is for nobody else.
func TestRedirect(t *testing.T) {
	var told atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told.Store(true) }))
	t.Cleanup(other.Close) // once the gateway has left
	listener := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(listener.Close) // once the gateway has left
	h := newGatewaySetup(t)
	h.open(map[string]string{"far": fmt.Sprintf(`{"url": %q}`, listener.URL)}, "")
	require.False(t, h.gateway.ServerStatuses()[0].Connected)
	require.Contains(t, h.gateway.ServerStatuses()[0].Why, "the server redirects")
	require.False(t, told.Load())
}

// TestElsewhere: a server of the older transport names the URL that takes its messages. One at another host gets none, nor the headers.
func TestElsewhere(t *testing.T) {
	var told atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told.Store(true) }))
	t.Cleanup(other.Close) // once the gateway has left
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", other.URL)
		_ = http.NewResponseController(w).Flush() // a client that is gone is not told
		<-r.Context().Done()                      // it stays, so that the end of the stream is not what is heard first
	}))
	t.Cleanup(listener.Close) // once the gateway has left
	h := newGatewaySetup(t)
	h.open(map[string]string{"far": fmt.Sprintf(`{"type": "sse", "url": %q, "headers": {"X-Key": "k"}}`, listener.URL)}, "")
	require.False(t, h.gateway.ServerStatuses()[0].Connected)
	require.False(t, told.Load())
}
