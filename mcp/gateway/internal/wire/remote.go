package wire

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ErrEnded is the reason of requests that ended with their connection.
var ErrEnded = errors.New("the connection to it was ended")

// RemoteTransport is the transport of a server by URL. It ends all requests
// with the connection: an unanswered request has no end of its own, and the SDK
// keeps streams open that no call bounds.
type RemoteTransport struct {
	sdk.Transport

	base *http.Transport

	mu   sync.Mutex // never held across a wait
	over bool
	conn sdk.Connection
	why  error // why the gateway ended the connection; nil: it did not
}

// RemoteConfig says how to reach a server by URL.
type RemoteConfig struct {
	URL     string
	Headers map[string]string
	SSE     bool              // use the transport of revision 2024-11-05
	Auth    auth.OAuthHandler // nil: the headers alone
	Base    *http.Transport   // of this connection alone
	Whole   context.Context   //nolint:containedctx // of the connection; its end ends the requests
	Flood   func(why error)   // ends a connection that carries only messages that respond to nothing
}

// NewRemoteTransport returns the transport of a server by URL, and the same
// with the interceptor that its connections need.
func NewRemoteTransport(c RemoteConfig, x *Exchange) (*RemoteTransport, sdk.Transport) {
	f := &RemoteTransport{base: c.Base}
	home := ""
	if link, err := url.Parse(c.URL); err == nil { // otherwise it sends nothing
		home = origin(link)
	}
	requests := &http.Client{Transport: &httpTransport{base: c.Base, refuse: f.refuse, home: home, headers: c.Headers, flights: &x.Flights, whole: c.Whole, flood: c.Flood}, CheckRedirect: redirected}
	if c.SSE {
		f.Transport = &sdk.SSEClientTransport{Endpoint: c.URL, HTTPClient: requests, MaxEventSize: maxMessage}
		return f, interceptTransport{f, x, nil}
	}
	f.Transport = &sdk.StreamableClientTransport{Endpoint: c.URL, HTTPClient: requests, MaxEventSize: maxMessage, MaxRetries: 2, OAuthHandler: c.Auth}
	return f, f
}

// refuse stores why the gateway sends nothing to the server, as the SDK can
// report only a closed connection.
func (f *RemoteTransport) refuse(why error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.why = why
	return why
}

// Refused returns why the gateway sends nothing to the server. The receiver can
// be nil.
func (f *RemoteTransport) Refused() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.why
}

// Connect returns the connection of the SDK itself, to which the SDK gives more
// than to other types.
func (f *RemoteTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := f.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	over := f.over
	f.conn = conn
	f.mu.Unlock()
	if over {
		_ = conn.Close()
		return nil, ErrEnded
	}
	return conn, nil
}

// Leave ends the connection. It notifies the server, for which the SDK waits a
// bounded time.
func (f *RemoteTransport) Leave() {
	f.mu.Lock()
	f.over = true
	conn := f.conn
	f.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // the response to the end does not matter
	}
	f.base.CloseIdleConnections()
}
