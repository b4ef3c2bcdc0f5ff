package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/revert/journal"
)

// refusals are errors of the protocol that a server answers a call with.
var refusals = map[string]string{
	"arguments": `{"code":-32602,"message":"no such thing: <a> & \"b\""}`,
	"internal":  `{"code":-32603,"message":"it broke","data":null}`,
	"own":       `{"code":4711,"message":"own words","data":{"z":[1.50,{"<k>":null}],"a":"ü"}}`,
	"text":      `{"code":-32000,"message":"","data":"said"}`,
}

// TestErrorsOfTheProtocol: an error of the protocol comes to the client as the server wrote it, and the outcome is on the journal all
// the same.
func TestErrorsOfTheProtocol(t *testing.T) {
	for name, text := range refusals {
		for class, status := range map[string]string{"pivot": "unknown", "pure": "failed"} {
			t.Run(name+"/"+class, func(t *testing.T) {
				h := newGatewaySetup(t)
				entry := h.scripted(oneTool, `tools/call {"jsonrpc":"2.0","id":ID,"error":`+text+`}`)
				want := direct(t, entry).call("x", map[string]any{})
				require.NotNil(t, want.Error)
				h.open(map[string]string{"s": entry}, `{"s": {"tools": {"x": {"effectClass": "`+class+`"}}}}`)
				got := h.through().call("s__x", map[string]any{})
				require.Nil(t, got.Result, string(got.Result))
				require.Equal(t, compacted(t, want.Error), compacted(t, got.Error))
				require.Equal(t, status, h.ended())
			})
		}
	}
}

// ended is how the one call on the journal ended.
func (h *gatewaySetup) ended() (status string) {
	h.t.Helper()
	for e, err := range h.journal.Entries(h.t.Context(), journal.Query{}) {
		require.NoError(h.t, err)
		switch kind := string(e.Header.Kind); kind {
		case "done", "failed", "unknown":
			require.Empty(h.t, status)
			status = kind
		}
	}
	return status
}

// compacted is JSON in one form of those that mean the same text.
func compacted(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var compact, escaped bytes.Buffer
	require.NoError(t, json.Compact(&compact, raw))
	json.HTMLEscape(&escaped, compact.Bytes())
	return escaped.String()
}

// TestErrorsOfTheProtocolByURL: the same over HTTP, of servers and for clients of both ways to talk. What is wrong between the gateway and
// the server is not the client's, and it gets a result that is an error.
func TestErrorsOfTheProtocolByURL(t *testing.T) {
	for era, stateless := range map[string]bool{"2026-07-28": true, "2025-11-25": false} {
		server := sdk.NewServer(&sdk.Implementation{Name: "far"}, nil)
		server.AddTool(&sdk.Tool{Name: "x", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var in struct{ Error jsonrpc.Error }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			return nil, &in.Error
		})
		handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: stateless})
		far := httptest.NewServer(handler)
		t.Cleanup(far.Close) // once the gateway has left
		h := newGatewaySetup(t)
		h.open(map[string]string{"far": fmt.Sprintf(`{"type": "http", "url": %q}`, far.URL)}, `{"far": {"tools": {"x": {"effectClass": "pure"}}}}`)
		srv, err := mcp.New(h.rt, mcp.Options{Mirror: h.gateway})
		require.NoError(t, err)
		for _, revision := range []string{"2026-07-28", "2025-11-25"} {
			here, there := sdk.NewInMemoryTransports()
			done := make(chan error, 1)
			go func() { done <- srv.Run(context.WithoutCancel(t.Context()), there, h.session()) }()
			cs, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), here, &sdk.ClientSessionOptions{ProtocolVersion: revision})
			require.NoError(t, err)
			for name, text := range refusals {
				t.Run(era+"/"+revision+"/"+name, func(t *testing.T) {
					_, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "far__x", Arguments: map[string]any{"error": json.RawMessage(text)}})
					var got *jsonrpc.Error
					require.True(t, errors.As(err, &got), "%v", err)
					var want jsonrpc.Error
					require.NoError(t, json.Unmarshal([]byte(text), &want))
					require.Equal(t, want.Code, got.Code)
					require.Equal(t, want.Message, got.Message)
					if string(want.Data) != "null" {
						require.JSONEq(t, string(cmpOr(want.Data)), string(cmpOr(got.Data)))
					}
				})
			}
			r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "far__x", Arguments: map[string]any{"error": map[string]any{"code": sdk.CodeHeaderMismatch, "message": "wrong header"}}})
			require.NoError(t, err)
			require.True(t, r.IsError)
			require.NoError(t, cs.Close())
			<-done //nolint:errcheck // it says that the client left
		}
		require.NoError(t, h.gateway.Close())
	}
}

func cmpOr(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}
