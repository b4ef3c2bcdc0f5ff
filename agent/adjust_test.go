package agent_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestAnApprovalIsNotOfTheAdjustedTool checks that approvals of the old tool do
// not count for the adjusted one. This includes remembered approvals.
func TestAnApprovalIsNotOfTheAdjustedTool(t *testing.T) {
	ctx := t.Context()
	asks := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": "package remit\nask contains \"look\"\n"}})
	var said []string
	was := lamp(t, &said, "1", "a", "old")
	is, err := was.Patch([]byte(`[{"op":"replace","path":"/description","value":"new"}]`))
	is = mustTool(t, is, err)
	rt := newRuntime(t, agent.Policy(asks), agent.SuspendForApproval(), agent.Tools(was))
	tx := begin(t, newSession(t, rt))
	out, err := tx.Invoke(ctx, "lamp", "x")
	require.ErrorIs(t, err, tool.ErrPending)
	_, err = rt.RememberApproval(ctx, agent.Answer{Call: out.Call, Approved: true, By: "kim"}, ctxperm.RememberScope{Always: true})
	require.NoError(t, err)
	require.NoError(t, rt.SetTools(is))
	_, err = tx.Resume(ctx, out.Call)
	require.ErrorIs(t, err, tool.ErrDenied)
	_, err = tx.Invoke(ctx, "lamp", "x")
	require.ErrorIs(t, err, tool.ErrPending, "it is asked about anew")
	require.Empty(t, said)
	require.NoError(t, rt.SetTools(was))
	_, err = tx.Invoke(ctx, "lamp", "x")
	require.NoError(t, err, "the control: for the old one it counts")
}

// TestAnAdjustedToolKeepsWithin: a built-in tool whose needs are narrower writes there and
// nowhere else, and its calls are reverted.
func TestAnAdjustedToolKeepsWithin(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "docs"), 0o755))
	all, err := tool.NewRegistry(builtin.Files()...)
	require.NoError(t, err)
	was, ok := all.Get("file_write")
	require.True(t, ok)
	is, err := was.Patch([]byte(`[{"op":"replace","path":"/needs","value":[
		{"action":"write","resource":"file://workspace/docs/**"}]}]`))
	is = mustTool(t, is, err)
	rt := newRuntime(t, agent.Policy(allowAll()), agent.Tools(is), agent.Root("workspace", dir))
	tx := begin(t, newSession(t, rt))
	out, err := tx.Invoke(ctx, "file_write", tool.Args{"path": "docs/a.md", "content": "x"})
	require.NoError(t, err, "%+v", out.Error)
	require.FileExists(t, filepath.Join(dir, "docs", "a.md"))
	for _, path := range []string{"a.md", "docs/../a.md", "docs2/a.md"} {
		_, err = tx.Invoke(ctx, "file_write", tool.Args{"path": path, "content": "x"})
		require.ErrorIs(t, err, tool.ErrInvalid, path)
		require.NoFileExists(t, filepath.Join(dir, path))
	}
	_, err = tx.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(dir, "docs", "a.md"))
}
