package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

var errOver = errors.New("the connection to it was ended")

// remoteTransport is the transport of a server by URL. It ends all requests
// with the connection: an unanswered request has no end of its own, and the SDK
// keeps streams open that no call bounds.
type remoteTransport struct {
	sdk.Transport

	base *http.Transport

	mu   sync.Mutex // never held across a wait
	over bool
	conn sdk.Connection
	why  error // why the gateway ended the connection; nil: it did not
}

// refuse stores why the gateway sends nothing to the server, as the SDK can
// report only a closed connection.
func (f *remoteTransport) refuse(why error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.why = why
	return why
}

// refused returns why the gateway sends nothing to the server. The receiver can
// be nil.
func (f *remoteTransport) refused() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.why
}

// Connect returns the connection of the SDK itself, to which the SDK gives more
// than to other types.
func (f *remoteTransport) Connect(ctx context.Context) (sdk.Connection, error) {
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
		return nil, errOver
	}
	return conn, nil
}

// leave ends the connection. It notifies the server, for which the SDK waits a
// bounded time.
func (f *remoteTransport) leave() {
	f.mu.Lock()
	f.over = true
	conn := f.conn
	f.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // the response to the end does not matter
	}
	f.base.CloseIdleConnections()
}

// limitedReader returns a request that ends with its connection, until the
// caller calls release. After that end, only the request that notifies the
// server can begin, whose time the SDK bounds.
func (w *httpTransport) limitedReader(r *http.Request) (_ *http.Request, release func(), err error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := func() bool { return true }
	if r.Method != http.MethodDelete {
		if err := context.Cause(w.whole); err != nil {
			cancel(nil)
			return nil, nil, err
		}
		stop = context.AfterFunc(w.whole, func() { cancel(context.Cause(w.whole)) })
	}
	return r.Clone(ctx), func() {
		stop()
		cancel(nil)
	}, nil
}

// forNobody replaces a response that its caller gave up. A truncated response
// would end the connection, and with it other calls.
const forNobody = `{"jsonrpc":"2.0","id":"given up","error":{"code":-32000,"message":"nobody waits for the answer any more"}}`

// readWhole passes on a message that is no stream.
func (b *bodyReader) readWhole(p []byte) (int, error) {
	if b.err == nil && len(p) > 0 {
		b.seen, b.err = io.ReadAll(io.LimitReader(b.ReadCloser, maxMessage+1))
		switch {
		case len(b.seen) > maxMessage:
			b.err = errLong
		case b.err == nil:
			if b.catch != nil {
				b.message(b.seen)
			}
			b.ready, b.err = b.seen, io.EOF
		case b.of.Err() != nil && b.whole.Err() == nil:
			b.ready, b.err = []byte(forNobody), io.EOF
		}
	}
	return b.hand(p)
}

// hand passes on the bytes that are ready.
func (b *bodyReader) hand(p []byte) (int, error) {
	n := copy(p, b.ready)
	if b.ready = b.ready[n:]; n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, b.err
}

// idleMessageCounter counts consecutive messages that respond to nothing.
type idleMessageCounter struct {
	n     int
	since time.Time
}

func (i *idleMessageCounter) more(now time.Time) error {
	if now.Sub(i.since) > time.Minute {
		i.since, i.n = now, 0
	}
	if i.n++; i.n > maxIdle {
		return errFlood
	}
	return nil
}
