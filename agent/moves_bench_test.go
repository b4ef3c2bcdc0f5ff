package agent_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

// BenchmarkSharedBegin measures the calls of a session whose journal other
// processes can use: as a transaction of its own, and between Begin and Commit.
func BenchmarkSharedBegin(b *testing.B) {
	j, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "state"))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, j.Close()) })
	echo, err := tool.Create("echo", "", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
	require.NoError(b, err)
	rt, err := agent.New(agent.Journal(j), agent.Host(hosttest.New(1)), agent.Tools(echo), agent.Policy(allowAll()))
	require.NoError(b, err)
	s, err := rt.Session(b.Context(), perm.Principal{ID: "coder"})
	require.NoError(b, err)
	b.Run("call", func(b *testing.B) {
		for range b.N {
			_, err := s.Call(b.Context(), "echo", "x")
			require.NoError(b, err)
		}
	})
	b.Run("transaction", func(b *testing.B) {
		for range b.N {
			_, err := s.Update(b.Context(), func(tx *agent.Txn) error {
				_, err := tx.Invoke(b.Context(), "echo", "x")
				return err
			})
			require.NoError(b, err)
		}
	})
}
