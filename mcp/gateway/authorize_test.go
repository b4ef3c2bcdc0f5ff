package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/tool"
)

// tokenSource gets a token when one is wanted.
type tokenSource struct{ token atomic.Pointer[oauth2.Token] }

func (c *tokenSource) TokenSource(context.Context) (oauth2.TokenSource, error) {
	if t := c.token.Load(); t != nil {
		return oauth2.StaticTokenSource(t), nil
	}
	return nil, nil //nolint:nilnil // there is none yet
}

func (c *tokenSource) Authorize(_ context.Context, _ *http.Request, r *http.Response) error {
	c.token.Store(&oauth2.Token{AccessToken: "good"})
	return r.Body.Close()
}

// TestAuthorize: where a server wants a token, who authorizes there gets it.
func TestAuthorize(t *testing.T) {
	server := newRequestingServer("")
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close) // once the gateway has left
	h := newGatewaySetup(t)
	var wanted []string
	h.open(map[string]string{"s": fmt.Sprintf(`{"type": "http", "url": %q}`, listener.URL)}, requestingTools, func(o *gateway.Options) {
		o.Authorize = func(server, url string) auth.OAuthHandler {
			wanted = append(wanted, server+" "+url)
			return &tokenSource{}
		}
	})
	require.Equal(t, tool.StatusDone, h.call("s__echo", tool.Args{"word": "w"}).Status)
	require.Equal(t, []string{"s " + listener.URL}, wanted)
	require.NoError(t, h.gateway.Close())
}

// TestAskedOnTheOpenStream: what an older server by URL asks of nobody in particular is for the one call that is under way.
func TestAskedOnTheOpenStream(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "far", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "person"}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct {
		Word string `json:"word"`
	},
	) (*sdk.CallToolResult, any, error) {
		apart, cancel := context.WithCancel(context.Background()) // no part of the request: the stream that is open is all there is
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		a, err := r.Session.Elicit(apart, &sdk.ElicitParams{Message: "who?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}})
		if err != nil {
			return nil, nil, err
		}
		return says("%s", responseText(a)), nil, nil
	})
	listener := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(listener.Close) // once the gateway has left
	h := newGatewaySetup(t)
	// Without a time of its own the call would not end where the question reaches nobody.
	known := strings.Replace(requestingTools, `"person": {`, `"person": {"timeout": "1m", `, 1)
	h.open(map[string]string{"s": fmt.Sprintf(`{"type": "http", "url": %q}`, listener.URL)}, known)
	cs := h.client(h.serve(), modern, "Ann", func(string) {})
	got, err := ask(t.Context(), cs, "person", "w")
	require.NoError(t, err)
	require.Equal(t, "accept Ann", got)
	require.NoError(t, h.gateway.Close())
}
