package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// interceptTransport is a transport that reads and routes all messages, one
// after the other, before the SDK.
type interceptTransport struct {
	sdk.Transport
	x     *Exchange
	noise func(line []byte) // receives the lines of a pipe that are no messages
}

// NewPipeTransport returns the transport of a server by command. Noise receives
// the lines of the server that are no messages.
func NewPipeTransport(in io.WriteCloser, out io.ReadCloser, x *Exchange, noise func(line []byte)) sdk.Transport {
	return interceptTransport{stdioTransport{in, out}, x, noise}
}

// Connect returns the connection.
func (t interceptTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.x.Apart = true
	tap := &interceptConn{Connection: conn, x: t.x, flights: &t.x.Flights, over: make(chan struct{}), waiting: map[any]*ResponseSlot{}, owed: pendingServerRequests{sizes: map[any]int{}}}
	if tap.pipe, _ = conn.(*stdioConn); tap.pipe != nil {
		t.x.direct = tap
		tap.pipe.skipped = func(line []byte) error {
			t.noise(line)
			return tap.idle.more(time.Now())
		}
	}
	return tap, nil
}

// interceptConn reads and routes the messages of a connection.
type interceptConn struct {
	sdk.Connection

	x       *Exchange
	pipe    *stdioConn // nil: not a pipe, and the SDK sends everything
	flights *InFlightCalls
	over    chan struct{}      // closed when the reader ends
	why     error              // why the reader ended; written before over is closed
	idle    idleMessageCounter // only the reader uses it

	mu      sync.Mutex // never held across a wait
	waiting map[any]*ResponseSlot
	owed    pendingServerRequests
	asked   int64 // requests that bypass the SDK
}

// firstOwn is the first ID of requests that bypass the SDK, which counts its
// own from one. It fits servers that keep IDs in 32 bits.
const firstOwn = 1 << 30

// Send sends one round of a tool call past the SDK.
func (t *interceptConn) Send(ctx context.Context, c *ResponseSlot, w Request, r Round) error {
	params, err := paramsOf(w.call(r))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	c.arrived = make(chan struct{})
	t.mu.Lock()
	id := firstOwn + t.asked%firstOwn
	t.asked++
	t.waiting[id] = c
	t.mu.Unlock()
	failed := make(chan error, 1)
	var sent atomic.Bool // or that it must never be sent
	go func() {          // a server that does not read must not block a call past its timeout
		if err := t.pipe.request(ctx, id, methodCall, params, &sent); err != nil {
			failed <- err
		}
	}()
	for {
		select {
		case <-c.arrived:
			c.of.progress.send()
			return nil
		case <-c.of.progress.arrived():
			c.of.progress.send()
		case err := <-failed:
			t.removeRequest(id)
			return err
		case <-t.over:
			c.of.progress.send()
			return t.why
		case <-ctx.Done():
			if sent.CompareAndSwap(false, true) {
				t.removeRequest(id)
				return fmt.Errorf("%w: %w", ErrNotSent, context.Cause(ctx))
			}
			t.abandon(id)
			go t.cancel(id, ctx.Err())
			return ctx.Err()
		}
	}
}

// cancel notifies the server that the response is not needed, if the server
// reads.
func (t *interceptConn) cancel(id int64, why error) {
	ctx, cancel := context.WithTimeout(context.Background(), PeerTimeout)
	defer cancel()
	params := fmt.Appendf(nil, `{"requestId":%d,"reason":%q}`, id, why)
	_ = t.Write(ctx, &jsonrpc.Request{Method: "notifications/cancelled", Params: params})
}

// Write remembers the response slot of a request.
func (t *interceptConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if req, ok := m.(*jsonrpc.Request); ok && req.IsCall() {
		if c := responseSlotOf(ctx); c != nil {
			t.mu.Lock()
			t.waiting[req.ID.Raw()] = c
			t.mu.Unlock()
			context.AfterFunc(ctx, func() { t.abandon(req.ID.Raw()) })
		}
	}
	err := t.Connection.Write(ctx, m)
	if resp, ok := m.(*jsonrpc.Response); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.owed.answered(resp.ID.Raw())
	}
	return err
}

// Read stores results in their response slots, and returns the messages for the
// SDK.
func (t *interceptConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := t.read(ctx)
		if err != nil {
			t.why = err
			close(t.over)
		}
		if m != nil || err != nil {
			return m, err
		}
	}
}

// read routes the next message. It returns nil if the message is not for the
// SDK.
func (t *interceptConn) read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := t.Connection.Read(ctx)
	if err != nil {
		return nil, err
	}
	resp, ok := m.(*jsonrpc.Response)
	if !ok {
		return t.handleMessage(m)
	}
	t.idle.n = 0
	c := t.removeRequest(resp.ID.Raw())
	if c == nil {
		return m, nil
	}
	var said *jsonrpc.Error
	if errors.As(resp.Error, &said) {
		c.refuse(said)
	} else {
		c.setResult(resp.Result)
	}
	if c.of != nil { // a later request belongs to another call
		t.flights.Remove(c.of)
	}
	if c.arrived == nil {
		return m, nil
	}
	close(c.arrived)
	return nil, nil
}

// handleMessage routes a message that is no response, and returns the part for
// the SDK.
func (t *interceptConn) handleMessage(m jsonrpc.Message) (jsonrpc.Message, error) {
	if err := t.idle.more(time.Now()); err != nil {
		return nil, err
	}
	r, is := m.(*jsonrpc.Request)
	if !is {
		return m, nil
	}
	if t.pipe != nil && t.x.progress.handle(r) {
		return nil, nil
	}
	t.flights.relayRequest(r)
	if asks(r.Method) {
		if err := markRequest(r, t.flights.sole()); err != nil {
			return nil, err
		}
	}
	if !t.countRequest(r) {
		return nil, errFlood
	}
	return m, nil
}

func (t *interceptConn) countRequest(r *jsonrpc.Request) bool {
	if !r.IsCall() {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owed.asked(r)
}

// abandon removes a waiting request. It keeps those of calls, whose late
// responses count, up to a bound.
func (t *interceptConn) abandon(id any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.waiting[id]; c != nil && (c.of == nil || len(t.waiting) > mostLost) {
		delete(t.waiting, id)
	}
}

func (t *interceptConn) removeRequest(id any) *ResponseSlot {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.waiting[id]
	delete(t.waiting, id)
	return c
}
