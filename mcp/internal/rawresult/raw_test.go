package rawresult_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/tool"
)

func TestSlot(t *testing.T) {
	ctx, slot := rawresult.With(t.Context())
	require.Nil(t, slot.Left())
	written := json.RawMessage(`{"b":1.0, "a":[]}`)
	rawresult.Leave(ctx, json.RawMessage(`{}`))
	rawresult.Leave(ctx, written)
	require.Equal(t, written, slot.Left())
	rawresult.Leave(context.Background(), written) // without a slot nothing happens

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
	require.Equal(t, `{}`, string((&rawresult.Slot{}).Original(tool.Result{JSON: json.RawMessage(`{}`)})), "nothing was left")
}

func TestResult(t *testing.T) {
	r := rawresult.Result(json.RawMessage(`{"content":[]}`), "text", map[string]string{"k": "v"})
	require.True(t, rawresult.Is(r))
	require.Equal(t, "v", r.Meta["k"])
	require.False(t, rawresult.Is(tool.Result{JSON: r.JSON}))
	require.True(t, rawresult.Is(rawresult.Result(json.RawMessage(`{}`), "", nil)))
}

// TestKept: an error of the protocol is found again by the notes of its call, as it was written; without a note there is none.
func TestKept(t *testing.T) {
	notes := map[string]json.RawMessage{}
	var fails error
	note := func(_ context.Context, key string, value any) error {
		text, err := canon.Marshal(value)
		require.NoError(t, err)
		notes[key] = text
		return fails
	}
	for _, want := range []*jsonrpc.Error{
		{Code: -32603, Message: "it broke"},
		{Code: 4711, Message: "ü", Data: json.RawMessage(`{"z":[1.50,{"<k>":null}], "a":"ü"}`)},
		{Code: 1, Data: json.RawMessage(`null`)},
	} {
		ctx, slot := rawresult.With(t.Context())
		slot.Last(note)
		rawresult.Refuse(ctx, want)
		require.Equal(t, want, slot.Refusal())
		require.Equal(t, want, rawresult.Kept(notes).Refusal())
	}
	ctx, slot := rawresult.With(t.Context())
	slot.Last(note)
	fails = errors.New("the journal is gone")
	rawresult.Refuse(ctx, &jsonrpc.Error{Code: 1})
	require.Nil(t, slot.Refusal(), "nobody could tell it later")
	require.Nil(t, rawresult.Kept(nil).Refusal())
}
