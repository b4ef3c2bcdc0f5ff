package trace_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/internal/trace"
)

// TestTrace: what a request names goes on to the next server, and what is no trace goes nowhere.
func TestTrace(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, tt := range []struct {
		name     string
		in, want map[string]any
	}{
		{"all", map[string]any{"traceparent": parent, "tracestate": "a=1", "baggage": "user=7", "other": "x"}, map[string]any{"traceparent": parent, "tracestate": "a=1", "baggage": "user=7"}},
		{"none", map[string]any{"other": "x"}, map[string]any{}},
		{"nil", nil, map[string]any{}},
		{"broken", map[string]any{"traceparent": "00-xyz", "baggage": 7}, map[string]any{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := map[string]any{}
			trace.Into(trace.From(context.Background(), tt.in), out)
			require.Equal(t, tt.want, out)
		})
	}
}
