package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/tool"
)

func withParams(p tool.Params) tool.Spec {
	return tool.Spec{Name: "x", Params: p, Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
		return tool.Result{}, nil
	}}
}

// TestParams: each parameter becomes what a schema says of it, and nothing else is accepted.
func TestParams(t *testing.T) {
	made, err := tool.FromSpec(withParams(tool.Params{
		{Name: "city", Type: "string", Description: "Where.", Required: true, Examples: []any{"Oslo"}},
		{Name: "days", Type: "integer", Default: 3},
		{Name: "unit", Type: "string", Enum: []any{"metric", "imperial"}, Default: "metric"},
		{Name: "hours", Type: "array", Items: "number"},
		{Name: "rest", Type: "object"},
		{Name: "short", Type: "boolean", Default: false},
	}))
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"required":["city"],"properties":{
		"city":{"type":"string","description":"Where.","examples":["Oslo"]},
		"days":{"type":"integer","default":3},
		"unit":{"type":"string","enum":["metric","imperial"],"default":"metric"},
		"hours":{"type":"array","items":{"type":"number"}},
		"rest":{"type":"object"},
		"short":{"type":"boolean","default":false}}}`, string(made.InputSchema()))
	again, err := tool.FromSpec(made.Spec())
	require.NoError(t, err, "what a tool returns makes the same tool")
	require.Equal(t, made.Digest(), again.Digest())
	none, err := tool.FromSpec(withParams(tool.Params{}))
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"properties":{}}`, string(none.InputSchema()))
	free, err := tool.FromSpec(withParams(nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"string"}`, string(free.InputSchema()))
}

// TestParamsThatAreNone: what could not be meant is refused by its name.
func TestParamsThatAreNone(t *testing.T) {
	for _, tt := range []struct {
		says  string
		param tool.Param
	}{
		{`parameter 1: a name has 1 to 64 characters`, tool.Param{Type: "string"}},
		{`parameter "a": unknown type ""; valid are string, integer`, tool.Param{Name: "a"}},
		{`unknown type "text"`, tool.Param{Name: "a", Type: "text"}},
		{`only an array has`, tool.Param{Name: "a", Type: "string", Items: "string"}},
		{`unknown type "texts" of its items`, tool.Param{Name: "a", Type: "array", Items: "texts"}},
		{`required and has a default`, tool.Param{Name: "a", Type: "string", Required: true, Default: "x"}},
		{`enum has no value`, tool.Param{Name: "a", Type: "string", Enum: []any{}}},
		{`enum 1: it is a number, want a string`, tool.Param{Name: "a", Type: "string", Enum: []any{1}}},
		{`default: it has another value, want "a"`, tool.Param{Name: "a", Type: "string", Enum: []any{"a"}, Default: "b"}},
		{`example 1: it is a number with a fraction, want an integer`, tool.Param{Name: "a", Type: "integer", Examples: []any{1.5}}},
		{`default`, tool.Param{Name: "a", Type: "object", Default: func() {}}},
	} {
		_, err := tool.FromSpec(withParams(tool.Params{tt.param}))
		require.ErrorContains(t, err, tt.says)
	}
	_, err := tool.FromSpec(withParams(tool.Params{{Name: "path", Type: "string"}, {Name: "Path", Type: "string"}}))
	require.ErrorContains(t, err, `parameters "path" and "Path" could be taken for one another`)
	both := withParams(tool.Params{})
	both.Input = json.RawMessage(`{}`)
	_, err = tool.FromSpec(both)
	require.ErrorContains(t, err, "leave one out")
}
