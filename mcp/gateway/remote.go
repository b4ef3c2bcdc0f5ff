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

// remoteTransport is a server that is reached by URL. A program's death ends all that waits for it; here that has to be done: a request which nobody
// answers has no end of its own, and the SDK has streams open that no call bounds.
type remoteTransport struct {
	sdk.Transport

	base *http.Transport

	mu   sync.Mutex // never held across a wait
	over bool
	conn sdk.Connection
	why  error // the gateway wants nothing of it; nil: it does
}

// refuse keeps why nothing is sent to the server: the SDK may say only that there is no connection any more.
func (f *remoteTransport) refuse(why error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.why = why
	return why
}

// refused is why nothing is sent to the server, which may not be far.
func (f *remoteTransport) refused() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.why
}

// Connect connects. What it returns is the SDK's own, which it tells more than any other.
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

// leave ends the connection. The server is told, which the SDK does not wait for without end.
func (f *remoteTransport) leave() {
	f.mu.Lock()
	f.over = true
	conn := f.conn
	f.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // what it was told is of no note
	}
	f.base.CloseIdleConnections()
}

// limitedReader is a request that ends with its connection, until release is called. None begins after that, but the one that tells the server of
// the end, to which the SDK gives a time of its own.
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

// forNobody is read in the place of an answer that its caller gave up: what is cut off would end the connection, and with it the calls of
// others.
const forNobody = `{"jsonrpc":"2.0","id":"given up","error":{"code":-32000,"message":"nobody waits for the answer any more"}}`

// readWhole hands on a message that came whole.
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

// hand hands on what is ready.
func (b *bodyReader) hand(p []byte) (int, error) {
	n := copy(p, b.ready)
	if b.ready = b.ready[n:]; n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, b.err
}

// idleMessageCounter counts messages in a row that answer nothing.
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
