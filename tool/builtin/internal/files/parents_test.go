package files_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/files"
)

// TestParents: a write into a folder that is missing says what makes it; with parents it is made, each folder asked for
// and recorded, and the revert removes what was made and nothing else.
func TestParents(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "old"), 0o755))
	var asked []string
	engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if r.Purpose == perm.PurposeRun {
			asked = append(asked, string(r.Access.Action)+" "+r.Access.Resource.Text)
		}
		if r.Access.Resource.Path == "old/private" {
			return perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{{Text: "private"}}}), nil
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	rt, err := agent.New(agent.Tools(files.Tools()...), agent.Root("workspace", dir), agent.Policy(engine), agent.Log(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	require.NoError(t, err)

	out, err := s.Call(ctx, "file_write", tool.Args{"path": "old/new/deep/a.txt", "content": "a"})
	require.ErrorIs(t, err, tool.ErrFailed)
	require.Contains(t, out.Text, `its folder does not exist`)
	require.Contains(t, out.Text, `dir_create makes it, and so does "parents": true`)
	require.NotContains(t, out.Text, "file_list")

	asked = nil
	out, err = s.Call(ctx, "file_write", tool.Args{"path": "old/new/deep/a.txt", "content": "a", "parents": true})
	require.NoError(t, err)
	require.Equal(t, []string{
		"write file://workspace/old/new/deep/a.txt", "write file://workspace/old/new", "write file://workspace/old/new/deep",
	}, asked, "what is there already is not asked for")
	require.Len(t, out.Changes, 3)
	rep, err := s.Revert(ctx, out.Txn, revert.Options{})
	require.NoError(t, err, rep)
	require.NoDirExists(t, filepath.Join(dir, "old/new"))
	require.DirExists(t, filepath.Join(dir, "old"))

	out, err = s.Call(ctx, "file_write", tool.Args{"path": "old/private/b/a.txt", "content": "a", "parents": true, "root": "workspace"})
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Contains(t, out.Text, "private")
	entries, err := fs.ReadDir(os.DirFS(dir), "old")
	require.NoError(t, err)
	require.Empty(t, entries)
}

// TestParentsAreTheBound checks that a running file_write can access only its
// path. With parents it can also access the folders above. Its declared needs
// do not extend this.
func TestParentsAreTheBound(t *testing.T) {
	var write tool.Tool
	for _, one := range files.Tools() {
		if one.Name() == "file_write" {
			write = one
		}
	}
	strays, err := write.Modify(func(s *tool.Spec) {
		s.Execute = func(ctx context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
			f, err := handle.Open(tc, "workspace")
			if err != nil {
				return tool.Result{}, err
			}
			return tool.Text("strayed"), f.Write(ctx, "elsewhere.txt", nil, handle.WriteOptions{})
		}
	})
	require.NoError(t, err)
	dir := t.TempDir()
	allow := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	rt, err := agent.New(agent.Tools(strays), agent.Root("workspace", dir), agent.Policy(allow), agent.Log(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	s, err := rt.Session(context.Background(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	for _, parents := range []bool{false, true} {
		out, err := s.Call(context.Background(), "file_write", tool.Args{"path": "a/b.txt", "content": "", "parents": parents})
		require.ErrorIs(t, err, tool.ErrDenied)
		require.Equal(t, "grant", out.Stage)
	}
	require.NoFileExists(t, filepath.Join(dir, "elsewhere.txt"))
}
