package files_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/files"
)

// underAskAll is a workspace under the shipped pack by which a person approves each step.
func underAskAll(t *testing.T, opts ...agent.Option) (dir string, rt *agent.Runtime, tx *agent.Txn) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range map[string]string{
		"src/a.go": "needle\n", "src/deep/b.go": "x\nneedle\n", "src/bin": "needle\x00", "src/.env": "needle=1\n", "other": "needle\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	require.NoError(t, os.Symlink("a.go", filepath.Join(dir, "src/link.go")))
	engine, err := rego.Load(rego.Source{FS: policies.AskAll()})
	require.NoError(t, err)
	rt, err = agent.New(append([]agent.Option{
		agent.Tools(files.Tools()...), agent.Root("workspace", dir), agent.Policy(engine), agent.Log(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	tx, err = s.Begin(t.Context())
	require.NoError(t, err)
	return dir, rt, tx
}

// names lists all that is in a folder.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		all = append(all, rel)
		return err
	}))
	return all
}

// folderCalls are calls that act on more than they name.
var folderCalls = []struct {
	tool   string
	args   tool.Args
	asked  []string // what is asked about while the call runs
	output string
}{
	{"file_search", tool.Args{"path": "src", "pattern": "needle"}, []string{
		"read file://workspace/src/a.go", "read file://workspace/src/bin", "list file://workspace/src/deep", "read file://workspace/src/deep/b.go",
	}, `{"matches":[{"path":"src/a.go","line":1,"text":"needle"},{"path":"src/deep/b.go","line":2,"text":"needle"}],"has_more":false,"left_out":{"denied":1,"link":1,"not_text":1}}`},
	{"file_list", tool.Args{"path": "src", "recursive": true}, []string{
		"list file://workspace/src/a.go", "list file://workspace/src/bin", "list file://workspace/src/deep", "list file://workspace/src/deep/b.go", "list file://workspace/src/link.go",
	}, `{"entries":[{"name":"src/a.go","type":"file","size":7},{"name":"src/bin","type":"file","size":7},{"name":"src/deep","type":"dir","size":0},{"name":"src/deep/b.go","type":"file","size":9},{"name":"src/link.go","type":"link","size":0}],"has_more":false,"left_out":{"denied":1}}`},
	{"file_copy", tool.Args{"from": "src/deep", "to": "copy"}, []string{
		"list file://workspace/src/deep", "read file://workspace/src/deep/b.go", "write file://workspace/copy/b.go",
	}, `"copied"`},
	{"file_move", tool.Args{"from": "src/deep", "to": "moved"}, []string{
		"list file://workspace/src/deep", "read file://workspace/src/deep/b.go", "delete file://workspace/src/deep/b.go", "write file://workspace/moved/b.go",
	}, `"moved"`},
	{"file_delete", tool.Args{"path": "src/deep", "recursive": true}, []string{
		"list file://workspace/src/deep", "delete file://workspace/src/deep/b.go",
	}, `"deleted"`},
	{"dir_create", tool.Args{"path": "x/y/z"}, []string{"write file://workspace/x", "write file://workspace/x/y"}, `"the directory is there"`},
}

// TestFolderCallsAskOnce: an operation on a folder works out all that it needs and asks
// once, with a list, when nothing has changed yet.
func TestFolderCallsAskOnce(t *testing.T) {
	for _, tt := range folderCalls {
		t.Run(tt.tool, func(t *testing.T) {
			var asked [][]string
			var before []string
			var dir string
			dir, _, tx := underAskAll(t, agent.Approver(ctxperm.ApproverFunc(func(_ context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
				var all []string
				for _, access := range a.Accesses {
					all = append(all, access.String())
				}
				if a.Running {
					asked = append(asked, all)
				}
				require.Equal(t, before, names(t, dir))
				return ctxperm.Approve("boss"), nil
			})))
			before = names(t, dir)
			o, err := tx.Invoke(t.Context(), tt.tool, tt.args)
			require.NoError(t, err, o.Text)
			require.Equal(t, [][]string{tt.asked}, asked)
			require.JSONEq(t, tt.output, string(o.Output))
			rep, err := tx.Revert(t.Context(), revert.Options{})
			require.NoError(t, err)
			require.True(t, rep.Complete())
			require.Equal(t, before, names(t, dir))
		})
	}
}

// TestFolderCallsWait checks that a folder call without an approver is pending.
// It needs two approvals: one before it runs, and one for the files that it
// finds. Without them it has no effect.
func TestFolderCallsWait(t *testing.T) {
	for _, tt := range folderCalls {
		t.Run(tt.tool, func(t *testing.T) {
			dir, rt, tx := underAskAll(t, agent.SuspendForApproval())
			before := names(t, dir)
			o, err := tx.Invoke(t.Context(), tt.tool, tt.args)
			for range 2 { // before it runs, and for what it found
				require.ErrorIs(t, err, tool.ErrPending, o.Text)
				require.Equal(t, before, names(t, dir))
				_, c, failed := revert.LoadCall(t.Context(), rt.Journal(), o.Call)
				require.NoError(t, failed)
				require.NoError(t, rt.Answer(t.Context(), agent.Answer{Call: o.Call, Approved: true, By: "boss", RequestDigest: c.Asked.Digest}))
				o, err = tx.Resume(t.Context(), o.Call)
			}
			require.Equal(t, tool.StatusDone, o.Status, o.Text)
			require.JSONEq(t, tt.output, string(o.Output))
		})
	}
}

// TestFolderCallsDenied checks that the runtime denies the whole call if the
// approver refuses it or does not answer.
func TestFolderCallsDenied(t *testing.T) {
	for name, say := range map[string]ctxperm.ApproverFunc{
		"refused": func(_ context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
			if a.Running {
				return ctxperm.Deny("boss", "not these"), nil
			}
			return ctxperm.Approve("boss"), nil
		},
		"unanswered": func(_ context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
			if a.Running {
				return ctxperm.Answer{}, context.DeadlineExceeded
			}
			return ctxperm.Approve("boss"), nil
		},
	} {
		for _, tt := range folderCalls {
			t.Run(name+" "+tt.tool, func(t *testing.T) {
				dir, _, tx := underAskAll(t, agent.Approver(say))
				before := names(t, dir)
				o, err := tx.Invoke(t.Context(), tt.tool, tt.args)
				require.ErrorIs(t, err, tool.ErrDenied, o.Text)
				require.Equal(t, "approver", o.Stage)
				require.Equal(t, before, names(t, dir))
				require.Empty(t, o.Changes)
			})
		}
	}
}

// TestSearchSaysWhatItLeftOut: a file that was named is not skipped in silence, and
// neither is what the policy denies below a folder.
func TestSearchSaysWhatItLeftOut(t *testing.T) {
	dir, tx := session(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin"), []byte("needle\x00"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".env"), []byte("needle"), 0o600))
	for _, tt := range []struct {
		args tool.Args
		want string
	}{
		{tool.Args{"pattern": "needle", "path": "bin"}, `{"matches":[],"has_more":false,"left_out":{"not_text":1}}`},
		{tool.Args{"pattern": "needle", "glob": ".env"}, `{"matches":[],"has_more":false,"left_out":{"denied":1}}`},
		{tool.Args{"pattern": "needle", "glob": "nothing"}, `{"matches":[],"has_more":false}`},
	} {
		o, err := tx.Invoke(t.Context(), "file_search", tt.args)
		require.NoError(t, err, o.Text)
		require.JSONEq(t, tt.want, string(o.Output))
	}
}
