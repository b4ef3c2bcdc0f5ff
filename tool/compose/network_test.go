package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/compose"
)

// TestPartThatCanReachTheNetwork: a part that can run a program with network
// access, and failed, may have had an effect that no handle saw.
func TestPartThatCanReachTheNetwork(t *testing.T) {
	allow := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	for action, want := range map[perm.Action]error{perm.Connect: tool.ErrUnknown, perm.Execute: tool.ErrFailed} {
		part, err := tool.FromSpec(tool.Spec{
			Name: "fetch", EffectClass: effect.Pivot, Confinement: tool.Handles, Needs: []perm.ResourceAccess{perm.Access(action, "exec://git")},
			Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
				return tool.Result{}, errors.New("the connection broke")
			},
		})
		require.NoError(t, err)
		// A trusted part makes the whole trusted, so that the parts alone tell.
		after, err := tool.Create("after", "", func(context.Context, string) (string, error) { return "", nil }, tool.Effect(effect.Pivot))
		require.NoError(t, err)
		chain, err := compose.Chain(compose.Declaration{Name: "chain"}, compose.Part{Tool: part}, compose.Part{Tool: after})
		require.NoError(t, err)
		rt, err := agent.New(agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(chain), agent.Policy(allow))
		require.NoError(t, err)
		s, err := rt.Session(t.Context(), perm.Principal{ID: "p"})
		require.NoError(t, err)
		_, err = s.Call(t.Context(), "chain", "x")
		require.ErrorIs(t, err, want, string(action))
		require.NoError(t, rt.Close())
	}
}
