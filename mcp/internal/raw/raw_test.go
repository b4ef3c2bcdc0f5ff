package raw_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/internal/raw"
	"github.com/remit-dev/remit/tool"
)

func TestSlot(t *testing.T) {
	ctx, slot := raw.With(t.Context())
	require.Nil(t, slot.Left())
	written := json.RawMessage(`{"b":1.0, "a":[]}`)
	raw.Leave(ctx, json.RawMessage(`{}`))
	raw.Leave(ctx, written)
	require.Equal(t, written, slot.Left())
	raw.Leave(context.Background(), written) // without a slot nothing happens

	for _, tt := range []struct {
		name string
		json string // of the result that came down the line
		want string
	}{
		{"what was left, in canonical form", `{"a":[],"b":1}`, `{"b":1.0, "a":[]}`},
		{"redacted on its way", `{"a":"[hidden]","b":1}`, `{"a":"[hidden]","b":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, string(slot.Original(tool.Result{JSON: json.RawMessage(tt.json)})))
		})
	}
	require.Equal(t, `{}`, string((&raw.Slot{}).Original(tool.Result{JSON: json.RawMessage(`{}`)})), "nothing was left")
}

func TestResult(t *testing.T) {
	r := raw.Result(json.RawMessage(`{"content":[]}`), "text", map[string]string{"k": "v"})
	require.True(t, raw.Is(r))
	require.Equal(t, "v", r.Meta["k"])
	require.False(t, raw.Is(tool.Result{JSON: r.JSON}))
	require.True(t, raw.Is(raw.Result(json.RawMessage(`{}`), "", nil)))
}
