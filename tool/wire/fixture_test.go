package wire

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/tool"
)

// weather is a tool with a member that may be left out; its description of it would be a rule elsewhere.
const weather = `{"type":"object","properties":{"city":{"type":"string","minLength":1},"days":{"type":"integer","minimum":1,"maximum":9}},
	"required":["city"],"additionalProperties":false}`

func made(t testing.TB, name, description, input string) tool.Tool {
	t.Helper()
	s := tool.Spec{
		Name: name, Description: description,
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{}, nil
		},
	}
	if input != "" {
		s.Input = json.RawMessage(input)
	}
	out, err := tool.FromSpec(s)
	require.NoError(t, err)
	return out
}

// two are the tools that most tests offer: one of arguments, one of free text.
func two(t testing.TB) []tool.Tool {
	t.Helper()
	return []tool.Tool{made(t, "weather", "Tells the weather.", weather), made(t, "say", "", "")}
}

func adapter(t testing.TB, f Format) Adapter {
	t.Helper()
	a, err := New(f, two(t)...)
	require.NoError(t, err)
	return a
}

func read(t testing.TB, a Adapter, turn string) []Call {
	t.Helper()
	before := turn
	calls, err := a.Calls(json.RawMessage(turn))
	require.NoError(t, err)
	require.Equal(t, before, turn)
	return calls
}

// same compares two JSON texts, numbers by their spelling.
func same(t testing.TB, want, got string) {
	t.Helper()
	require.Equal(t, spelled(t, want), spelled(t, got))
}

func spelled(t testing.TB, text string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	require.NoError(t, dec.Decode(&v), text)
	return v
}

func definitions(t testing.TB, a Adapter) string {
	t.Helper()
	raw, err := a.Definitions()
	require.NoError(t, err)
	return string(raw)
}

func results(t testing.TB, a Adapter, calls []Call, outcomes ...tool.Outcome) string {
	t.Helper()
	messages, err := a.Results(calls, outcomes)
	require.NoError(t, err)
	raw, err := json.Marshal(messages)
	require.NoError(t, err)
	return string(raw)
}

func done(r tool.Result) tool.Outcome {
	o := tool.Outcome{Status: tool.StatusDone, Result: r, Output: r.Output(), Text: r.Text}
	if o.Text == "" {
		o.Text = string(o.Output)
	}
	return o
}

func denied() tool.Outcome {
	return tool.Outcome{Status: tool.StatusDenied, Text: "Denied: not here. Repeating the call cannot help."}
}
