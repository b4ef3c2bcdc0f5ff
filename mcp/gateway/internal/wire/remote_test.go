package wire

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// TestRequestAtTheEnd checks that a request that meets the end of its
// connection opens no connection of the transport below that stays open.
func TestRequestAtTheEnd(t *testing.T) {
	const server = "http://127.0.0.1:1"
	whole, cut := context.WithCancelCause(t.Context())
	base := &http.Transport{}
	f, _ := NewRemoteTransport(RemoteConfig{URL: server, Base: base, Whole: whole}, &Exchange{})
	base.Proxy = func(*http.Request) (*url.URL, error) { // after the check for the end, and before a connection is chosen
		f.Leave()
		return nil, nil
	}
	returned, wanted := make(chan struct{}), make(chan error, 1)
	base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		cut(ErrEnded)
		<-returned
		wanted <- ctx.Err()
		return nil, ErrEnded
	}
	transport, is := f.Transport.(*sdk.StreamableClientTransport)
	require.True(t, is)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server, nil)
	require.NoError(t, err)
	_, err = transport.HTTPClient.Do(r) //nolint:bodyclose // there is none
	close(returned)
	require.ErrorIs(t, err, ErrEnded)
	require.ErrorIs(t, <-wanted, context.Canceled, "a connection would open that no request uses")
}
