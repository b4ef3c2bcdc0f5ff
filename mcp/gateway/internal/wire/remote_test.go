package wire

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// TestRequestAtTheEnd checks that a request that meets the end of its
// connection leaves no open connection of the transport below.
func TestRequestAtTheEnd(t *testing.T) {
	states := make(chan http.ConnState, 16)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) { states <- s }
	server.Start()
	defer server.Close()
	whole, cut := context.WithCancelCause(t.Context())
	base := &http.Transport{}
	f, _ := NewRemoteTransport(RemoteConfig{URL: server.URL, Base: base, Whole: whole}, &Exchange{})
	base.Proxy = func(*http.Request) (*url.URL, error) { // after the check for the end, and before a connection is chosen
		cut(ErrEnded)
		f.Leave()
		return nil, nil
	}
	transport, is := f.Transport.(*sdk.StreamableClientTransport)
	require.True(t, is)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	_, err = transport.HTTPClient.Do(r) //nolint:bodyclose // there is none
	require.ErrorIs(t, err, ErrEnded)
	for _, want := range []http.ConnState{http.StateNew, http.StateClosed} {
		select {
		case s := <-states:
			require.Equal(t, want, s)
		case <-time.After(time.Minute):
			require.Fail(t, "no connection became "+want.String())
		}
	}
}
