package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	ctxfiles "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// outOfTime is an engine that does not answer in time when it is asked about
// an access before, or during, a call.
func outOfTime(dynamic bool) perm.Engine {
	return perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if r.Access.Dynamic == dynamic {
			return perm.Decision{}, fmt.Errorf("engine: %w", perm.ErrTimeout)
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
}

// TestOverloadIsNoRefusal: a policy that does not answer in time lets nothing run,
// and nothing says that it refused.
func TestOverloadIsNoRefusal(t *testing.T) {
	noRefusal := func(t *testing.T, out tool.Outcome, err error) {
		t.Helper()
		require.Equal(t, tool.StatusTimeout, out.Status)
		require.Equal(t, "policy", out.Stage)
		require.Equal(t, "The policy did not decide in time. It refused nothing, and the call had no effect. A retry may help.", out.Text)
		require.ErrorIs(t, err, tool.ErrTimeout)
		require.NotErrorIs(t, err, tool.ErrDenied)
		require.Equal(t, 5, out.ExitCode())
	}
	t.Run("before the call", func(t *testing.T) {
		dir := t.TempDir()
		rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(outOfTime(false)))
		txn, args := begin(t, newSession(t, rt)), tool.Args{"path": "a.txt", "content": "hello there"}
		out, err := txn.Invoke(context.Background(), "file_write", args, agent.WithCallID("one"))
		noRefusal(t, out, err)
		require.Contains(t, out.Error.Fix, "repeat the call")
		require.NoFileExists(t, filepath.Join(dir, "a.txt"))
		again, err := txn.Invoke(context.Background(), "file_write", args, agent.WithCallID("one"))
		noRefusal(t, again, err)
		require.Equal(t, out.Call, again.Call)
	})
	t.Run("during the call", func(t *testing.T) {
		dir := t.TempDir()
		peek, err := tool.CreateWith("peek", "Reads a file.", []perm.ResourceAccess{{Action: perm.Read, Resource: "file://workspace/**"}},
			func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
				f, err := ctxfiles.Open(tc, "workspace")
				if err != nil {
					return "", err
				}
				_, err = f.ReadFile(ctx, "a.txt")
				return "", err
			}, tool.Pure())
		require.NoError(t, err)
		rt := newRuntime(t, agent.Tools(peek), agent.Root("workspace", dir), agent.Policy(outOfTime(true)))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hi"), 0o600))
		out, err := begin(t, newSession(t, rt)).Invoke(context.Background(), "peek", "")
		noRefusal(t, out, err)
	})
}
