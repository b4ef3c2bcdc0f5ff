// Package trace carries the trace that a request of the protocol belongs to between _meta and a context: the bare members
// traceparent, tracestate and baggage, as W3C writes them.
package trace

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
)

// carrier is _meta. What is no string is not there.
type carrier map[string]any

// Get returns a member.
func (c carrier) Get(key string) string {
	value, _ := c[key].(string)
	return value
}

// Set sets a member.
func (c carrier) Set(key, value string) { c[key] = value }

// Keys lists the members.
func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}

var (
	parent  = propagation.TraceContext{}
	baggage = propagation.Baggage{}
)

// From returns a context that belongs to the trace which the _meta of a request names, if it names one.
func From(ctx context.Context, meta map[string]any) context.Context {
	if meta["traceparent"] == nil && meta["baggage"] == nil {
		return ctx
	}
	return baggage.Extract(parent.Extract(ctx, carrier(meta)), carrier(meta))
}

// Into names the trace of a context in the _meta of a request to another server.
func Into(ctx context.Context, meta map[string]any) {
	parent.Inject(ctx, carrier(meta))
	baggage.Inject(ctx, carrier(meta))
}
