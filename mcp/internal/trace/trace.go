// Package trace copies the trace of an MCP request between _meta and a context:
// the plain members traceparent, tracestate and baggage, in the format of W3C.
package trace

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
)

// carrier is _meta. It ignores members that are no strings.
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

// From returns a context with the trace in the _meta of a request, if there is
// one.
func From(ctx context.Context, meta map[string]any) context.Context {
	if meta["traceparent"] == nil && meta["baggage"] == nil {
		return ctx
	}
	return baggage.Extract(parent.Extract(ctx, carrier(meta)), carrier(meta))
}

// Into writes the trace of a context to the _meta of an upstream request.
func Into(ctx context.Context, meta map[string]any) {
	parent.Inject(ctx, carrier(meta))
	baggage.Inject(ctx, carrier(meta))
}
