package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// abandoned leaves a transaction open that wrote a.txt, and one with a call that
// waits, and ends its process's life.
func abandoned(t *testing.T, dir, state string) (wrote, waits string) {
	ctx := context.Background()
	asks := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		effect := perm.Allow
		if r.Tool.Name == "file_delete" {
			effect = perm.Ask
		}
		return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: "so"}}}), nil
	})
	j, err := sqlite.Open(ctx, state)
	require.NoError(t, err)
	rt, err := agent.New(quiet(), agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(asks), agent.Journal(j), agent.SuspendForApproval())
	require.NoError(t, err)
	s := newSession(t, rt)
	one, two := begin(t, s), begin(t, s)
	_, err = one.Invoke(ctx, "file_write", tool.Args{"path": "a.txt", "content": "new"})
	require.NoError(t, err)
	_, err = two.Invoke(ctx, "file_write", tool.Args{"path": "b.txt", "content": "new"})
	require.NoError(t, err)
	_, err = two.Invoke(ctx, "file_delete", tool.Args{"path": "b.txt"})
	require.ErrorIs(t, err, tool.ErrPending)
	require.NoError(t, rt.Close())
	require.NoError(t, j.Close())
	return one.ID(), two.ID()
}

func TestOnAbandoned(t *testing.T) {
	for name, on := range map[string]agent.AbandonedAction{"keep": agent.LeaveOpen, "revert": agent.RevertAbandoned} {
		t.Run(name, func(t *testing.T) {
			ctx, dir, state := context.Background(), t.TempDir(), filepath.Join(t.TempDir(), "state")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("old"), 0o600))
			before := tree(t, dir)
			wrote, waits := abandoned(t, dir, state)

			j, err := sqlite.Open(ctx, state)
			require.NoError(t, err)
			defer func() { require.NoError(t, j.Close()) }()
			rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(allowAll()), agent.Journal(j), agent.OnAbandoned(on))
			mine := begin(t, newSession(t, rt))
			_, err = mine.Invoke(ctx, "file_write", tool.Args{"path": "mine.txt", "content": "stays"})
			require.NoError(t, err)
			rec, err := rt.Recover(ctx)
			require.NoError(t, err)
			require.ElementsMatch(t, []string{wrote, waits}, rec.Abandoned)

			open, err := j.Unfinished(ctx)
			require.NoError(t, err)
			var left []string
			for _, o := range open {
				left = append(left, o.Txn)
			}
			now := tree(t, dir)
			require.Contains(t, now, "mine.txt")
			require.Contains(t, now, "b.txt", "a transaction that waits for approval is not given up")
			if on == agent.LeaveOpen {
				require.Empty(t, rec.Reverted)
				require.ElementsMatch(t, []string{wrote, waits, mine.ID()}, left)
				require.NotEqual(t, before["a.txt"], now["a.txt"])
				return
			}
			require.Len(t, rec.Reverted, 1)
			require.Equal(t, wrote, rec.Reverted[0].Txn)
			require.Equal(t, revert.TxnReverted, rec.Reverted[0].State)
			require.ElementsMatch(t, []string{waits, mine.ID()}, left)
			require.Equal(t, before["a.txt"], now["a.txt"])
			rec, err = rt.Recover(ctx)
			require.NoError(t, err)
			require.Empty(t, rec.Reverted, "nothing is reverted twice")
		})
	}
	_, err := agent.New(quiet(), agent.OnAbandoned(9))
	require.ErrorContains(t, err, "LeaveOpen or RevertAbandoned")
}

func TestAbandonedIsRevertedAsFarAsItCan(t *testing.T) {
	ctx, dir, state := context.Background(), t.TempDir(), filepath.Join(t.TempDir(), "state")
	wrote, _ := abandoned(t, dir, state)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("somebody else's"), 0o600))
	j, err := sqlite.Open(ctx, state)
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(allowAll()), agent.Journal(j), agent.OnAbandoned(agent.RevertAbandoned))
	rec, err := rt.Recover(ctx)
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Len(t, rec.Reverted, 1)
	require.Equal(t, wrote, rec.Reverted[0].Txn)
	require.Len(t, rec.Reverted[0].NotReverted(), 1)
	text, err := os.ReadFile(filepath.Join(dir, "a.txt"))
	require.NoError(t, err)
	require.Equal(t, "somebody else's", string(text))
}
