package compose_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/compose"
)

// TestLaterPartSeesTheCall: a later part of a chain makes its input of the call's own, and of what the part before put out.
func TestLaterPartSeesTheCall(t *testing.T) {
	echo := func(name string) tool.Tool {
		made, err := tool.CreateWith(name, "", nil, func(_ context.Context, _ ctxperm.ToolContext, in string) (string, error) {
			return name + "(" + in + ")", nil
		}, tool.Pure())
		require.NoError(t, err)
		return made
	}
	both := func(call, before json.RawMessage) (json.RawMessage, error) {
		var a, b string
		if err := json.Unmarshal(call, &a); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(before, &b); err != nil {
			return nil, err
		}
		return json.Marshal(b + " for " + a)
	}
	made, err := compose.Chain(compose.Declaration{Name: "publish", Description: "Writes and books."},
		compose.Part{Tool: echo("write")}, compose.Part{Tool: echo("book"), With: both}, compose.Part{Tool: echo("tell"), With: both})
	require.NoError(t, err)
	allow := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	rt, err := agent.New(agent.Tools(made), agent.Policy(allow))
	require.NoError(t, err)
	defer func() { require.NoError(t, rt.Close()) }()
	s, err := rt.Session(context.Background(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	out, err := s.Call(context.Background(), "publish", "x")
	require.NoError(t, err)
	require.Equal(t, "tell(book(write(x) for x) for x)", out.Text)
	for _, parts := range [][]compose.Part{{{Tool: echo("a"), With: both}}, {{Tool: echo("a")}, {Tool: echo("b"), With: both, Input: func(in json.RawMessage) (json.RawMessage, error) { return in, nil }}}} {
		_, err = compose.Chain(compose.Declaration{Name: "wrong", Description: "Is refused."}, parts...)
		require.ErrorContains(t, err, "the With of a part is for a later part of a chain, instead of Input")
	}
}
