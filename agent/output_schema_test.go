package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/compose"
	"github.com/remit-dev/remit/tool/filter"
	"github.com/remit-dev/remit/tool/wire"
)

// TestOutputOutsideItsSchema: a structured output that its tool's schema does
// not allow is never returned, by a call of the tool or of a composed tool.
func TestOutputOutsideItsSchema(t *testing.T) {
	number, err := tool.FromSpec(tool.Spec{
		Name: "number", EffectClass: effect.Pure, Input: json.RawMessage(`{"type":"object","properties":{"n":{}}}`),
		Output: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
		Execute: func(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			return tool.Result{JSON: in}, nil
		},
	})
	require.NoError(t, err)
	chain, err := compose.Chain(compose.Declaration{Name: "chain"}, compose.Part{Tool: number})
	require.NoError(t, err)
	tx := begin(t, newSession(t, newRuntime(t, agent.Tools(number, chain), agent.Policy(allowAll()))))
	for name, refused := range map[string]error{"number": tool.ErrVerifyFailed, "chain": tool.ErrFailed} {
		_, err := tx.Invoke(t.Context(), name, tool.Args{"n": 1})
		require.NoError(t, err, "the control")
		for _, wrong := range []tool.Args{{"n": "1"}, {}} {
			out, err := tx.Invoke(t.Context(), name, wrong)
			require.ErrorIs(t, err, refused, name)
			require.Contains(t, out.Error.Why, "the output does not fit the tool's own schema", name)
			require.JSONEq(t, "null", string(out.Output), name)
		}
	}
}

// TestLoopOfARefusedBatch: if a filter refuses the calls of a turn as a batch,
// none of them runs, and the model reads why.
func TestLoopOfARefusedBatch(t *testing.T) {
	one := call("look", `{"n":1}`)
	b := newLoopBench(t, wire.Anthropic, []fakemodel.Turn{spoken("", one, one), spoken("Done.")}, agent.Filters(filter.Filter{
		Name: "strict", Batch: func(context.Context, filter.Batch) error { return errors.New("too many at once") },
	}))
	_, err := b.run(t.Context())
	require.NoError(t, err)
	require.Empty(t, b.ran)
	require.Equal(t, []tool.Status{tool.StatusDenied, tool.StatusDenied}, b.statuses)
	require.Contains(t, b.model.Received()[0].Text, "too many at once")
}
