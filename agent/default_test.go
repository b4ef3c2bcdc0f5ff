package agent_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// TestDefaults: what a call leaves out and has a default is there for the tool, for its
// accesses and on the journal.
func TestDefaults(t *testing.T) {
	var got string
	forecast, err := tool.FromSpec(tool.Spec{
		Name: "forecast", EffectClass: effect.Pure, Params: tool.Params{
			{Name: "city", Type: "string", Required: true},
			{Name: "days", Type: "integer", Default: 3},
		},
		Execute: func(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			got = string(in)
			return tool.Text(""), nil
		},
	})
	require.NoError(t, err)
	rt := newRuntime(t, agent.Tools(forecast), agent.Policy(allowAll()))
	tx := begin(t, newSession(t, rt))
	out, err := tx.Invoke(t.Context(), "forecast", tool.Args{"city": "Oslo"})
	require.NoError(t, err)
	require.JSONEq(t, `{"city":"Oslo","days":3}`, got)
	txn, err := revert.Load(t.Context(), rt.Journal(), tx.ID())
	require.NoError(t, err)
	call, _ := txn.Call(out.Call)
	require.JSONEq(t, got, string(call.Started.Input))
	_, err = tx.Invoke(t.Context(), "forecast", tool.Args{"days": 1})
	require.ErrorIs(t, err, tool.ErrInvalid)
	require.ErrorContains(t, err, `argument "city" is missing`)
}
