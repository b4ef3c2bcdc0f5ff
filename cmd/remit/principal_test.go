//go:build unix

package main

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestShownTo: log and show say who a session's tools and results are shown to, where its
// program said so, and nothing where it did not.
func TestShownTo(t *testing.T) {
	ctx := t.Context()
	workspace, state := testPlace(t)
	left := func(opts ...agent.SessionOption) (txn, call string) {
		j, err := sqlite.Open(ctx, state)
		require.NoError(t, err)
		rt, err := agent.New(agent.Journal(j), agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(builtin.Files()...), agent.Root("workspace", workspace))
		require.NoError(t, err)
		s, err := rt.Session(ctx, perm.Principal{ID: "coder"}, opts...)
		require.NoError(t, err)
		tx, err := s.Begin(ctx)
		require.NoError(t, err)
		out, err := tx.Invoke(ctx, "file_list", map[string]any{})
		require.NoError(t, err)
		require.NoError(t, tx.Commit(ctx))
		require.NoError(t, rt.Close())
		require.NoError(t, j.Close())
		return tx.ID(), out.Call
	}
	says := func(args ...string) string {
		code, out := command(t, append(args, "--workspace", workspace, "--state", state)...)
		require.Zero(t, code, out)
		return out
	}
	txn, call := left(agent.ClientProfile(perm.ClientFacts{
		Surface: "chat", Model: "m-1", Capabilities: []string{"vision"}, ProviderTrust: 700, Selected: []string{"file_list"}, Disabled: []string{"web"},
	}))
	const words = "chat, model m-1, confidence 700, capabilities vision, selected file_list, off web"
	const record = `"client":{"surface":"chat","model":"m-1","capabilities":["vision"],"confidence":700,"selected":["file_list"],"off":["web"]}`
	require.Contains(t, says("log", "--txn", txn), "coder  1 call  shown to "+words+"\n")
	require.Contains(t, says("log", "--txn", txn, "--json"), record)
	require.Contains(t, says("show", call), "shown to  "+words+"\n")
	require.Contains(t, says("show", call, "--json"), record)

	txn, call = left()
	for _, out := range []string{says("log", "--txn", txn), says("log", "--txn", txn, "--json"), says("show", call), says("show", call, "--json")} {
		require.NotContains(t, out, "shown to")
		require.NotContains(t, out, `"client"`)
	}
}
