package agent_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// TestClosedSessionsLeaveNoState checks that a runtime that serves for long does
// not keep the states of sessions that nobody holds, and keeps the others.
func TestClosedSessionsLeaveNoState(t *testing.T) {
	const opened, held = 4_000, 100
	rt := newRuntime(t)
	var kept []*agent.Session
	for i := range opened {
		s := newSession(t, rt)
		if i%(opened/held) == 0 {
			kept = append(kept, s)
		}
		if i%50 == 0 {
			runtime.GC()
		}
	}
	// A sweep runs at twice what the last one left and 64 more. It can leave the
	// held ones and those since the last collection.
	require.LessOrEqual(t, agent.SessionStates(rt), 2*(held+50)+64+50)
	for _, s := range kept {
		again, err := rt.ResumeSession(context.Background(), s.Token())
		require.NoError(t, err)
		require.True(t, agent.SameState(s, again), "with two states, each would count alone")
	}
}

// TestMissingRootIsLoggedOncePerToolSet checks that sessions do not repeat the
// warning, and that other tools get their own.
func TestMissingRootIsLoggedOncePerToolSet(t *testing.T) {
	var log bytes.Buffer
	rt := newRuntime(t, agent.Log(slog.New(slog.NewTextHandler(&log, nil))), agent.Tools(reader(t, "first")))
	warnings := func() int {
		newSession(t, rt)
		return strings.Count(log.String(), "needs a root that is not there")
	}
	require.Equal(t, 1, warnings())
	require.Equal(t, 1, warnings())
	require.Contains(t, log.String(), "root=first")
	require.NoError(t, rt.SetTools(reader(t, "second")))
	require.Equal(t, 2, warnings())
	require.Equal(t, 2, warnings())
	require.Contains(t, log.String(), "root=second")
}

// reader makes a tool that reads below a root.
func reader(t *testing.T, root string) tool.Tool {
	r, err := tool.CreateWith("reader", "Reads.", []perm.ResourceAccess{perm.Access(perm.Read, "file://"+root+"/**")},
		func(context.Context, ctxperm.ToolContext, string) (string, error) { return "", nil }, tool.Pure())
	require.NoError(t, err)
	return r
}
