package agent_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// computing is a tool that computes its accesses.
func computing(t *testing.T, access func() []perm.ResourceAccess) tool.Tool {
	tl, err := tool.FromSpec(tool.Spec{
		Name: "compute", EffectClass: effect.Reversible, Confinement: tool.Handles, Needs: anyWrite(),
		AccessFor: func(json.RawMessage) ([]perm.ResourceAccess, error) { return access(), nil },
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("ok"), nil
		},
	})
	return mustTool(t, tl, err)
}

// asks is an engine that asks about accesses of one kind and allows the others.
func asks(dynamic bool) perm.Engine {
	return perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if r.Access.Dynamic == dynamic {
			return perm.NewDecision(perm.Ask, perm.Details{}), nil
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
}

// TestAnswerIsBoundToTheAccesses: two asks that differ in nothing but what would
// be touched are two asks.
func TestAnswerIsBoundToTheAccesses(t *testing.T) {
	ask := func(names ...string) (asked ctxperm.ApprovalRequest) {
		approve := agent.Approver(ctxperm.ApproverFunc(func(_ context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
			asked = a
			return ctxperm.Approve("boss"), nil
		}))
		tl := computing(t, func() (all []perm.ResourceAccess) {
			for _, n := range names {
				all = append(all, perm.Access(perm.Write, "file://workspace/"+n))
			}
			return all
		})
		rt := newRuntime(t, agent.Host(hosttest.New(1)), agent.Tools(tl), agent.Policy(asks(false)), approve)
		out, err := begin(t, newSession(t, rt)).Invoke(t.Context(), "compute", "in")
		require.NoError(t, err)
		_, c, err := revert.LoadCall(t.Context(), rt.Journal(), out.Call)
		require.NoError(t, err)
		require.Equal(t, asked.Digest, c.Started.Approval.Digest)
		return asked
	}
	one, same := ask("a.txt"), ask("a.txt")
	require.Equal(t, one, same)
	for _, names := range [][]string{{"b.txt"}, {"a.txt", "b.txt"}} {
		other := ask(names...)
		require.Equal(t, []string{one.Call, one.Txn, one.ToolDigest}, []string{other.Call, other.Txn, other.ToolDigest})
		require.NotEqual(t, one.Digest, other.Digest)
	}
}

// TestAccessesStayTheTools checks that a tool can return the same slice for
// each call. The race detector reports a write of the runtime to it.
func TestAccessesStayTheTools(t *testing.T) {
	mine := []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/a.txt")}
	rt := newRuntime(t, agent.Tools(computing(t, func() []perm.ResourceAccess { return mine })), agent.Policy(allowAll()))
	tx := begin(t, newSession(t, rt))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := tx.Invoke(t.Context(), "compute", "in")
			require.NoError(t, err)
		})
	}
	all.Wait()
	require.Equal(t, perm.Access(perm.Write, "file://workspace/a.txt"), mine[0])
}
