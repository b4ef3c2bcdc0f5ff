package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// drainTransport keeps a connection open after end of input, as a client in a
// pipe can stop writing before it has its responses. The connection ends when
// the server has responded to all requests.
type drainTransport struct {
	sdk.Transport
	c sdk.Connection
}

// Connect returns the connection.
func (t *drainTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.c = c
	return &drainConn{Connection: c, asked: map[jsonrpc.ID]bool{}, none: make(chan struct{}, 1)}, nil
}

// notify sends the client a notification beside the SDK.
func (t *drainTransport) notify(ctx context.Context, m *jsonrpc.Request) error {
	return t.c.Write(ctx, m)
}

type drainConn struct {
	sdk.Connection
	mu    sync.Mutex // never held across a wait
	asked map[jsonrpc.ID]bool
	none  chan struct{} // signalled when no request is open
}

// Read reads the next message. It returns the end of input when all requests
// have responses, or after a while.
func (c *drainConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	r, ok := m.(*jsonrpc.Request)
	if ok && err == nil && r.Method == methodListen {
		r.Params = withTasks(r.Params)
	}
	if ok && err == nil && r.IsCall() && r.Method != methodListen {
		c.mu.Lock()
		c.asked[r.ID] = true
		c.mu.Unlock()
	}
	if err == nil {
		return m, nil
	}
	late := time.NewTimer(ending)
	defer late.Stop()
	for c.open() {
		select {
		case <-c.none:
		case <-ctx.Done():
			return nil, err
		case <-late.C:
			return nil, err
		}
	}
	return nil, err
}

func (c *drainConn) open() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked) > 0
}

// Write writes a message. A response counts when it is written.
func (c *drainConn) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.asked, r.ID)
		c.mu.Unlock()
		select {
		case c.none <- struct{}{}:
		default:
		}
	}
	return err
}
