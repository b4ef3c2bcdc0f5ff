package panics_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/internal/panics"
)

// TestMiddleware: a panic is an error of the request, which the log alone says more of; what ends well is let be.
func TestMiddleware(t *testing.T) {
	var out bytes.Buffer
	handle := panics.Middleware(slog.New(slog.NewTextHandler(&out, nil)))(func(_ context.Context, method string, _ sdk.Request) (sdk.Result, error) {
		if method == "bad" {
			panic("a secret")
		}
		return &sdk.CallToolResult{}, nil
	})
	r, err := handle(t.Context(), "good", nil)
	require.NoError(t, err)
	require.NotNil(t, r)
	require.Empty(t, out.String())

	r, err = handle(t.Context(), "bad", nil)
	require.Nil(t, r)
	var said *jsonrpc.Error
	require.ErrorAs(t, err, &said)
	require.EqualValues(t, jsonrpc.CodeInternalError, said.Code)
	require.NotContains(t, said.Message, "secret")
	require.Contains(t, out.String(), "a secret")
	require.Contains(t, out.String(), "panics_test.go", "the log says where")
}
