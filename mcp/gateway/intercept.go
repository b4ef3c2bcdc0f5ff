package gateway

import (
	"context"
	"errors"
	"fmt"
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
	s     *upstreamConn
	noise func(line []byte) // receives the lines of a pipe that are no messages
}

// Connect returns the connection.
func (t interceptTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.s.apart = true
	tap := &interceptConn{Connection: conn, s: t.s, flights: &t.s.flights, over: make(chan struct{}), waiting: map[any]*responseSlot{}, owed: pendingServerRequests{sizes: map[any]int{}}}
	if tap.pipe, _ = conn.(*stdioConn); tap.pipe != nil {
		t.s.tap = tap
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

	s       *upstreamConn
	pipe    *stdioConn // nil: not a pipe, and the SDK sends everything
	flights *inFlightCalls
	over    chan struct{}      // closed when the reader ends
	why     error              // why the reader ended; written before over is closed
	idle    idleMessageCounter // only the reader uses it

	mu      sync.Mutex // never held across a wait
	waiting map[any]*responseSlot
	owed    pendingServerRequests
	asked   int64 // requests that bypass the SDK
}

// errUnsent is the error of a call of which the server has read nothing.
var errUnsent = errors.New("the server does not read what it is sent, and the call was not sent")

// firstOwn is the first ID of requests that bypass the SDK, which counts its
// own from one. It fits servers that keep IDs in 32 bits.
const firstOwn = 1 << 30

// request sends a request past the SDK, whose types would parse a response that
// nothing reads. It waits until c has the response. An error other than the
// context's means that the connection has ended.
func (t *interceptConn) request(ctx context.Context, c *responseSlot, method string, params []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.come = make(chan struct{})
	t.mu.Lock()
	id := firstOwn + t.asked%firstOwn
	t.asked++
	t.waiting[id] = c
	t.mu.Unlock()
	failed := make(chan error, 1)
	var sent atomic.Bool // or that it must never be sent
	go func() {          // a server that does not read must not block a call past its timeout
		if err := t.pipe.request(ctx, id, method, params, &sent); err != nil {
			failed <- err
		}
	}()
	for {
		select {
		case <-c.come:
			c.of.reports.tell()
			return nil
		case <-c.of.reports.come():
			c.of.reports.tell()
		case err := <-failed:
			t.forget(id)
			return err
		case <-t.over:
			c.of.reports.tell()
			return t.why
		case <-ctx.Done():
			if sent.CompareAndSwap(false, true) {
				t.forget(id)
				return fmt.Errorf("%w: %w", errUnsent, context.Cause(ctx))
			}
			t.giveUp(id)
			go t.cancel(id, ctx.Err())
			return ctx.Err()
		}
	}
}

// cancel notifies the server that the response is not needed, if the server
// reads.
func (t *interceptConn) cancel(id int64, why error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
			context.AfterFunc(ctx, func() { t.giveUp(req.ID.Raw()) })
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
	c := t.forget(resp.ID.Raw())
	if c == nil {
		return m, nil
	}
	var said *jsonrpc.Error
	if errors.As(resp.Error, &said) {
		c.refuse(said)
	} else {
		c.leave(resp.Result)
	}
	if c.of != nil { // a later request belongs to another call
		t.flights.remove(c.of)
	}
	if c.come == nil {
		return m, nil
	}
	close(c.come)
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
	if t.pipe != nil && t.s.handleProgress(r) {
		return nil, nil
	}
	t.flights.hearRequest(r)
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

// giveUp removes a waiting request. It keeps those of calls, whose late
// responses count, up to a bound.
func (t *interceptConn) giveUp(id any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.waiting[id]; c != nil && (c.of == nil || len(t.waiting) > mostLost) {
		delete(t.waiting, id)
	}
}

func (t *interceptConn) forget(id any) *responseSlot {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.waiting[id]
	delete(t.waiting, id)
	return c
}
