package agentguard

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/lineage"
)

// TestUnknownParents checks a system that does not tell which process started
// which: while an agent works, only a person at a terminal is no agent.
func TestUnknownParents(t *testing.T) {
	all := []Record{{Client: "claude-code", Session: "s", Process: lineage.AskingProcess{Unknown: "x"}}}
	env := map[string]string{}
	a := &cli.App{Env: cli.Env{Getenv: func(name string) string { return env[name] }}}
	person := cli.Caller{Unknown: lineage.ErrUnknown}
	program := cli.Caller{Unknown: lineage.ErrUnknown, Terminal: errors.New("standard input is not a terminal")}
	is := func(who cli.Caller, all []Record) bool {
		t.Helper()
		agent, err := above(a, who, all)
		require.NoError(t, err)
		return agent != nil
	}
	require.False(t, is(person, all))
	require.True(t, is(program, all))
	require.False(t, is(program, nil), "no agent works")
	env["CLAUDECODE"] = "1"
	require.True(t, is(person, all))
	_, err := above(a, cli.Caller{Unknown: errors.New("no /proc")}, all)
	require.Error(t, err)
}
