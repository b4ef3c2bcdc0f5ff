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

// interceptTransport is a transport on which all messages come one after the other, each of which is seen.
type interceptTransport struct {
	sdk.Transport
	s     *upstreamConn
	noise func(line []byte) // told of lines of a pipe that are no messages
}

// Connect connects.
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

// interceptConn sees each message of a connection.
type interceptConn struct {
	sdk.Connection

	s       *upstreamConn
	pipe    *stdioConn // nil: it is no pipe, and all goes through the SDK
	flights *inFlightCalls
	over    chan struct{}      // closed when nothing is read any more
	why     error              // why not; written before
	idle    idleMessageCounter // only the one reader counts

	mu      sync.Mutex // never held across a wait
	waiting map[any]*responseSlot
	owed    pendingServerRequests
	asked   int64 // requests of its own
}

// errUnsent is the end of a call of which the server has not read anything.
var errUnsent = errors.New("the server does not read what it is sent, and the call was not sent")

// firstOwn is the first id of requests that go past the SDK, which counts its own from one. Servers that keep ids in 32 bits know
// them apart too.
const firstOwn = 1 << 30

// request sends a request past the SDK, whose types would read an answer that nobody looks at, and waits until c has the answer.
// With another error than the context's the connection has ended.
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
	var sent atomic.Bool // or never will be
	go func() {          // a server that does not read holds up no call for longer than it has
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

// cancel tells the server that nobody waits for an answer any more, if it listens.
func (t *interceptConn) cancel(id int64, why error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	params := fmt.Appendf(nil, `{"requestId":%d,"reason":%q}`, id, why)
	_ = t.Write(ctx, &jsonrpc.Request{Method: "notifications/cancelled", Params: params})
}

// Write remembers who waits for the answer.
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

// Read leaves results with who waits for them, and hands on what is for the SDK.
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

// read looks at the next message; nil: it is not for the SDK.
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
	if c.of != nil { // what comes next is asked for another one
		t.flights.remove(c.of)
	}
	if c.come == nil {
		return m, nil
	}
	close(c.come)
	return nil, nil
}

// handleMessage looks at a message that is no answer, and returns what of it is for the SDK.
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

// giveUp forgets who waited. The answer to a call is of note whenever it comes, as long as there are not too many.
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
