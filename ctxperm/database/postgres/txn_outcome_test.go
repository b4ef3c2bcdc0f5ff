package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// TestFails checks that a call that fails at any step changes nothing, and
// leaves nothing of this package in the database.
func TestFails(t *testing.T) {
	for _, point := range []string{"database.begin", "database.execute", "database.prepare", "database.commit"} {
		w := newTestEnv(t, users)
		h := hosttest.New(1)
		w.Start(agent.Host(h))
		before, tx := w.Dump(), w.Begin()
		h.OnPoint = func(at string) error {
			if at == point {
				return errors.New("no")
			}
			return nil
		}
		out := w.Call(tx, "sql_execute", "UPDATE users SET age = 1")
		require.Equal(t, tool.StatusFailed, out.Status, "%s: %s", point, out.Text)
		h.OnPoint = nil
		require.Equal(t, before, w.Dump(), point)
		w.Done(tx, "UPDATE users SET age = 2")
		_, err := tx.Revert(t.Context(), revert.Options{})
		require.NoError(t, err)
		require.Equal(t, before, w.Dump(), point)
	}
}

// TestLostAnswer checks a connection that is lost at COMMIT, and a transaction
// that the server ends. Then the server reports the outcome.
func TestLostAnswer(t *testing.T) {
	w := newTestEnv(t, users)
	h := hosttest.New(1)
	w.Start(agent.Host(h))
	before, tx := w.Dump(), w.Begin()
	h.OnPoint = func(at string) error {
		if at == "database.commit" {
			pgtest.Exec(t, w.owner, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'agent' AND state = 'idle in transaction'")
		}
		return nil
	}
	out := w.Call(tx, "sql_execute", "UPDATE users SET age = 1")
	require.Equal(t, tool.StatusFailed, out.Status, out.Text)
	require.Equal(t, "all", out.Reverted, "each row is as it was already")
	for _, u := range out.RevertResults {
		require.Equal(t, effect.Already, u.Outcome)
	}
	require.Equal(t, before, w.Dump())
}

// TestClaims checks that an open transaction claims the rows that it changed,
// and no others.
func TestClaims(t *testing.T) {
	w := newTestEnv(t, users)
	before := w.Dump()
	first, second := w.Begin(), w.Begin()
	w.Done(first, "UPDATE users SET age = 1 WHERE id = 1")
	w.Done(second, "UPDATE users SET age = 2 WHERE id = 2")
	out := w.Call(second, "sql_execute", "UPDATE users SET age = 3")
	require.Equal(t, tool.StatusFailed, out.Status)
	require.Contains(t, out.Error.Why, first.ID())
	require.NoError(t, first.Commit(context.Background()))
	w.Done(second, "UPDATE users SET age = 3")
	_, err := second.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	_, err = w.Session.Revert(t.Context(), first.ID(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before, w.Dump())
}
