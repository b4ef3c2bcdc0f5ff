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
	"github.com/remit-dev/remit/tool"
)

func named(tools []tool.Tool) (names []string) {
	for _, t := range tools {
		names = append(names, t.Name())
	}
	return names
}

func TestHiddenToolsAreNotListedAndStillDecided(t *testing.T) {
	ctx := context.Background()
	e := mustLoad(t, rego.Options{Deadline: time.Minute, Modules: map[string]string{"p.rego": `package remit
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
	require.Equal(t, []string{"fetch"}, named(shown))
	tx := begin(t, s)
	_, err = tx.Invoke(ctx, "send", "hidden is not forbidden")
	require.NoError(t, err)
	_, err = tx.Invoke(ctx, "fetch", "x")
	require.NoError(t, err)
	shown, err = s.Tools(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"fetch", "send"}, named(shown))
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
	require.Equal(t, []string{"fetch"}, named(shown))
}
