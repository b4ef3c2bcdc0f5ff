package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// ResponseSlot receives the raw result of one request. The SDK's types would
// reorder its members and lose unknown ones.
type ResponseSlot struct {
	of *InFlightCall // the call of the result; nil: none

	mu      sync.Mutex // never held across a wait
	result  json.RawMessage
	refusal *jsonrpc.Error // the error response
	arrived chan struct{}  // closed when either is set; nil: the SDK waits for the response
}

type responseSlotKey struct{}

// WithResponseSlot returns a context whose request has a response slot, for a
// call or, with nil, for no call.
func WithResponseSlot(ctx context.Context, of *InFlightCall) (context.Context, *ResponseSlot) {
	c := &ResponseSlot{of: of}
	return context.WithValue(ctx, responseSlotKey{}, c), c
}

func responseSlotOf(ctx context.Context) *ResponseSlot {
	c, _ := ctx.Value(responseSlotKey{}).(*ResponseSlot)
	return c
}

func (c *ResponseSlot) setResult(result json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result = bytes.Clone(result)
}

func (c *ResponseSlot) refuse(e *jsonrpc.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusal = e
}

// Received returns the result, or the error response.
func (c *ResponseSlot) Received() (json.RawMessage, *jsonrpc.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.result, c.refusal
}
