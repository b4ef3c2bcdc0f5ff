package script

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestBusySession: a run whose session began a transaction in another process
// says what it did not run.
func TestBusySession(t *testing.T) {
	ctx, state := t.Context(), t.TempDir()
	open := func() *agent.Runtime {
		j, err := sqlite.Open(ctx, state)
		require.NoError(t, err)
		rt, err := agent.New(agent.Journal(j), agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(builtin.Files()...))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, rt.Close()); require.NoError(t, j.Close()) })
		return rt
	}
	first, second := open(), open()
	s, err := first.Session(ctx, perm.Principal{ID: "agent"})
	require.NoError(t, err)
	same, err := second.ResumeSession(ctx, s.Token())
	require.NoError(t, err)
	_, err = s.Begin(ctx)
	require.NoError(t, err)

	r := &runner{session: same}
	var p *cli.Problem
	require.ErrorAs(t, r.begin(ctx), &p)
	require.Equal(t, cli.Problem{Code: cli.ExitUsage, What: "nothing was run", Why: p.Why, Fix: "wait until the other run has ended, and repeat; remit log lists what is open"}, *p)
	r.began = true // an earlier transaction of the script
	require.ErrorAs(t, r.begin(ctx), &p)
	require.Equal(t, "the rest of the script was not run", p.What)
}
