package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

func callIDLocks(tools []tool.Tool) (names []string) {
	for _, t := range tools {
		names = append(names, t.Name())
	}
	return names
}

func TestHiddenToolsAreNotListedAndStillDecided(t *testing.T) {
	ctx := context.Background()
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": `package remit
hide contains "nobody sends before reading" if {
	input.tool.name == "send"
	object.get(input.session.tools, ["fetch", "run"], 0) == 0
}
hide contains "not when a call runs" if input.purpose != "list"
allow contains "everything" if true`}})
	rt := newRuntime(t, agent.Tools(messenger(t)...), agent.Policy(e))
	s := newSession(t, rt)
	shown, err := s.Tools(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"fetch"}, callIDLocks(shown))
	tx := begin(t, s)
	_, err = tx.Invoke(ctx, "send", "hidden is not forbidden")
	require.NoError(t, err)
	_, err = tx.Invoke(ctx, "fetch", "x")
	require.NoError(t, err)
	shown, err = s.Tools(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"fetch", "send"}, callIDLocks(shown))
}

func TestAToolThatCannotBeDecidedAboutIsNotListed(t *testing.T) {
	engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if r.Purpose == perm.PurposeList && r.Tool.Name == "send" {
			return perm.Decision{}, errors.New("out of order")
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	s := newSession(t, newRuntime(t, agent.Tools(messenger(t)...), agent.Policy(engine)))
	shown, err := s.Tools(context.Background())
	require.ErrorContains(t, err, "tool send")
	require.ErrorContains(t, err, "out of order")
	require.Equal(t, []string{"fetch"}, callIDLocks(shown))
}

// TestForecast: what a call would meet is told by its input, as the call itself would be decided, and nothing is recorded.
func TestForecast(t *testing.T) {
	ctx := context.Background()
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": `package remit
hide contains "kept quiet" if input.call.args == "hidden"
hide contains "not when a call runs" if input.purpose != "list"
deny contains "no" if input.call.args == "denied"
ask contains "well" if input.call.args == "asked"
allow contains "fine" if input.call.args in {"allowed", "hidden"}`}})
	rt := newRuntime(t, agent.Tools(messenger(t)...), agent.Policy(e), agent.SuspendForApproval())
	s := newSession(t, rt)
	for input, want := range map[any]perm.Effect{"allowed": perm.Allow, "asked": perm.Ask, "denied": perm.Deny, "hidden": perm.Deny, "of no rule": perm.Deny, 7: perm.Deny} {
		got, err := s.PreviewDecision(ctx, "fetch", input)
		require.NoError(t, err)
		require.Equal(t, want, got, "%v", input)
	}
	got, err := s.PreviewDecision(ctx, "nothing", "allowed")
	require.NoError(t, err)
	require.Equal(t, perm.Deny, got)
	for entry, err := range rt.Journal().Entries(ctx, journal.Query{Session: s.ID()}) {
		require.NoError(t, err)
		require.NotContains(t, []string{"call", "asked", "decided", "denied", "failed", "done"}, string(entry.Header.Kind))
		require.Empty(t, entry.Header.Call)
	}

	engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if r.Purpose == perm.PurposeList {
			return perm.Decision{}, errors.New("out of order")
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	got, err = newSession(t, newRuntime(t, agent.Tools(messenger(t)...), agent.Policy(engine))).PreviewDecision(ctx, "fetch", "x")
	require.ErrorContains(t, err, "out of order")
	require.Equal(t, perm.Deny, got)

	off, err := rt.Session(ctx, perm.Principal{ID: "coder"}, agent.ClientProfile(perm.ClientFacts{Disabled: []string{"fetch"}}))
	require.NoError(t, err)
	got, err = off.PreviewDecision(ctx, "fetch", "allowed")
	require.NoError(t, err)
	require.Equal(t, perm.Deny, got, "the session does not see it")
}
