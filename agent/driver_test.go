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

type numbered struct{ n int }

func (*numbered) Schemes() []revert.Scheme { return nil }

type another struct{}

func (another) Schemes() []revert.Scheme { return nil }

// TestDriver: a running call finds the driver of a type, the first of several; no
// call after its end does, nor where there is none.
func TestDriver(t *testing.T) {
	var kept ctxperm.ToolContext
	driven, err := tool.FromSpec(tool.Spec{
		Name: "driven", Description: "Looks for its driver.", EffectClass: effect.Pure,
		Execute: func(ctx context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
			kept = tc
			d, err := ctxperm.DriverOf[*numbered](ctx, tc)
			if err != nil {
				return tool.Result{}, err
			}
			require.Equal(t, 1, d.n)
			_, err = ctxperm.DriverOf[another](ctx, tc)
			require.ErrorIs(t, err, ctxperm.ErrNoDriver)
			return tool.Result{Text: "found"}, nil
		},
	})
	require.NoError(t, err)
	rt := newRuntime(t, agent.Tools(driven), agent.Driver(&numbered{1}), agent.Driver(&numbered{2}))
	s := newSession(t, rt)
	_, err = s.Update(t.Context(), func(tx *agent.Txn) error {
		_, err := tx.Invoke(t.Context(), "driven", "x")
		return err
	})
	require.NoError(t, err)
	_, err = ctxperm.DriverOf[*numbered](t.Context(), kept)
	require.ErrorIs(t, err, ctxperm.ErrClosed)
	_, err = ctxperm.DriverOf[*numbered](t.Context(), ctxperm.ToolContext{})
	require.ErrorIs(t, err, ctxperm.ErrClosed)
	_, err = agent.New(agent.Driver(nil))
	require.ErrorContains(t, err, "the driver is nil")
}
