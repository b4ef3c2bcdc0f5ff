package agent_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// TestEngineThatChangesRequests checks that an engine that does not promise to
// read only cannot change what a call works with, or what the next one sees.
func TestEngineThatChangesRequests(t *testing.T) {
	var seen []string
	engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		text, err := json.Marshal([]any{r.Session.Recent, r.Session.Labels, r.Session.Client, r.Principal, r.Access.Resource, r.Tool})
		require.NoError(t, err)
		seen = append(seen, string(text))
		clear(r.Call.Args)
		clear(r.Session.Recent)
		clear(r.Session.Labels)
		clear(r.Principal.Roles)
		clear(r.Access.Resource.Segments)
		r.Session.Client.Surface = "changed"
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "yes"}}}), nil
	})
	got := ""
	look, err := tool.CreateTyped("look", "", nil, func(_ context.Context, _ ctxperm.ToolContext, in string) (string, error) {
		got = in
		return in, nil
	}, tool.Pure())
	require.NoError(t, err)
	rt := newRuntime(t, agent.Tools(look), agent.Policy(engine))
	s, err := rt.Session(context.Background(), perm.Principal{ID: "coder", Roles: []string{"editor"}})
	require.NoError(t, err)
	tx, err := s.Begin(context.Background())
	require.NoError(t, err)
	for range 3 {
		_, err := tx.Invoke(context.Background(), "look", "text")
		require.NoError(t, err)
		require.Equal(t, "text", got)
	}
	for _, text := range seen {
		require.Contains(t, text, `"editor"`)
		require.NotContains(t, text, "changed")
	}
	require.Contains(t, seen[len(seen)-1], `[{"tool":"look","status":"done"},{"tool":"look","status":"done"}]`)
}

// TestFactsKeepTheirRecentCalls checks that the recent calls that one call saw
// stay what they were while later calls are added to them.
func TestFactsKeepTheirRecentCalls(t *testing.T) {
	c := agent.NewCounters(hosttest.New(1))
	var facts []perm.SessionFacts
	var want []string
	for i := range 100 {
		id := string(rune('a'+i%26)) + string(rune('a'+i/26))
		f := c.Begin(id, "tool_"+id, nil)
		facts, want = append(facts, f), append(want, textOf(f))
		for _, earlier := range facts { // the next element is there by now
			_ = append(earlier.Recent, perm.RecentCall{Tool: "appended by a reader"})
		}
		c.End(id, tool.StatusDone, 0)
	}
	for i, f := range facts {
		require.Len(t, f.Recent, min(i, 32))
		require.Equal(t, want[i], textOf(f))
		require.NotContains(t, want[i], "appended")
	}
}

// TestEachToolHasItsOwnAccess checks that calls of several tools in turn are
// decided by their own access, against the grant and by the policy.
func TestEachToolHasItsOwnAccess(t *testing.T) {
	var asked string
	engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		asked = r.Access.Resource.Text
		require.Equal(t, r.Access.Resource.Name, r.Tool.Name)
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "yes"}}}), nil
	})
	var tools []tool.Tool
	for _, name := range []string{"one", "two", "three"} {
		one, err := tool.CreateTyped(name, "", nil, func(context.Context, ctxperm.ToolContext, string) (string, error) { return "", nil }, tool.Pure())
		require.NoError(t, err)
		tools = append(tools, one)
	}
	s := newSession(t, newRuntime(t, agent.Tools(tools...), agent.Policy(engine)),
		agent.Grant(perm.Access(perm.Call, "tool://one"), perm.Access(perm.Call, "tool://three")))
	tx, err := s.Begin(context.Background())
	require.NoError(t, err)
	for _, name := range []string{"one", "two", "one", "three", "two", "two", "three"} {
		_, err := tx.Invoke(context.Background(), name, "x")
		if name == "two" {
			require.ErrorIs(t, err, tool.ErrDenied)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "tool://"+name, asked)
	}
}
