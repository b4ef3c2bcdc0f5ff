package database_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/ctxperm/database/sqlite"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/database"
)

func allow(context.Context, perm.Request) (perm.Decision, error) {
	return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
}

func begin(t *testing.T, opts ...agent.Option) *agent.Txn {
	opts = append(opts, agent.Tools(database.Tools()...), agent.Policy(perm.EngineFunc(allow)), agent.Log(slog.New(slog.DiscardHandler)))
	rt, err := agent.New(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	tx, err := s.Begin(t.Context())
	require.NoError(t, err)
	return tx
}

// TestBadInput: what no database takes is refused, with the argument's name.
func TestBadInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	d, err := handle.New([]handle.Kind{sqlite.Kind()}, map[string]string{"main": "sqlite:" + path})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	tx := begin(t, agent.Driver(d))
	for _, tt := range []struct {
		args   tool.Args
		status tool.Status
		why    string
	}{
		{tool.Args{"sql": "SELECT 1"}, tool.StatusInvalid, "database"},
		{tool.Args{"database": "main"}, tool.StatusInvalid, "sql"},
		{tool.Args{"database": "main", "sql": "SELECT 1", "params": 3}, tool.StatusInvalid, "params"},
		{tool.Args{"database": "main", "sql": "SELECT ?", "params": []any{[]any{}}}, tool.StatusInvalid, "params"},
		{tool.Args{"database": "main", "sql": "SELECT ?", "params": []any{map[string]any{"x": 1}}}, tool.StatusInvalid, "params"},
		{tool.Args{"database": "main", "sql": "SELECT 1", "max_rows": 0}, tool.StatusInvalid, "max_rows"},
		{tool.Args{"database": "main", "sql": "SELECT 1", "page": 0}, tool.StatusInvalid, "page"},
		{tool.Args{"database": "main", "sql": "SELECT 1", "limit": 3}, tool.StatusInvalid, "limit"},
		{tool.Args{"database": "other", "sql": "SELECT 1"}, tool.StatusFailed, "there is main"},
		{tool.Args{"database": "main", "sql": "SELECT ?", "params": []any{map[string]any{"base64": "!"}}}, tool.StatusFailed, "not base64"},
		{tool.Args{"database": "main", "sql": "SELECT ?", "params": []any{1e30}}, tool.StatusFailed, "64 bits"},
	} {
		out, err := tx.Invoke(t.Context(), "sql_query", tt.args)
		require.Error(t, err)
		require.Equal(t, tt.status, out.Status, "%v: %s", tt.args, out.Text)
		require.Contains(t, out.Error.Why, tt.why, "%v", tt.args)
	}
}

// TestNoDriver: a runtime without databases says how to get one.
func TestNoDriver(t *testing.T) {
	out, err := begin(t).Invoke(t.Context(), "sql_query", tool.Args{"database": "main", "sql": "SELECT 1"})
	require.Error(t, err)
	require.Contains(t, out.Error.Why, "--database NAME=sqlite:PATH")
}
