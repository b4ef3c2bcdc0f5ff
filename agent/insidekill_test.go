package agent_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

const inCallKillDir, inCallKillMode = "REMIT_ASKING_KILLED_IN", "REMIT_ASKING_KILLED_HOW"

// newKilledRuntime is a runtime whose calls ask about the file e while they run.
func newKilledRuntime(t *testing.T, dir string, code func(ctx context.Context, f *files.Files) error, opts ...agent.Option) (*agent.Runtime, func()) {
	t.Helper()
	one, err := tool.CreateWith("one", "Does as the test says.", []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/**")}, func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
		f, err := files.Open(tc, "workspace")
		if err != nil {
			return "", err
		}
		return "", code(ctx, f)
	}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	require.NoError(t, err)
	j, err := sqlite.Open(context.Background(), filepath.Join(dir, "journal"))
	require.NoError(t, err)
	rt, err := agent.New(append([]agent.Option{
		agent.Tools(one), agent.Root("workspace", filepath.Join(dir, "ws")), agent.Journal(j), agent.Log(slog.New(slog.DiscardHandler)),
		agent.Policy(perm.EngineFunc(func(ctx context.Context, r perm.Request) (perm.Decision, error) {
			r.Access.Dynamic = r.Access.Dynamic && r.Access.Resource.Path == "e"
			return asksInside(ctx, r)
		})),
	}, opts...)...)
	require.NoError(t, err)
	return rt, func() {
		require.NoError(t, rt.Close())
		require.NoError(t, j.Close())
	}
}

// kill ends this process as kill -9 does.
func kill() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	panic(err)
}

// TestKilledWhileItAsks kills a process while an approver decides. The access
// did not happen, and recovery knows the earlier changes of the call. The
// runtime reverts them and accepts no answer.
func TestKilledWhileItAsks(t *testing.T) {
	ctx := context.Background()
	if dir := os.Getenv(inCallKillDir); dir != "" {
		opts := []agent.Option{agent.Approver(ctxperm.ApproverFunc(func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
			kill()
			return ctxperm.Answer{}, nil
		}))}
		if os.Getenv(inCallKillMode) != "approver" {
			opts = []agent.Option{agent.SuspendForApproval()}
		}
		rt, _ := newKilledRuntime(t, dir, func(ctx context.Context, f *files.Files) error {
			if os.Getenv(inCallKillMode) != "before a change" {
				if err := putNew(ctx, f, "d"); err != nil {
					return err
				}
			}
			return putNew(ctx, f, "e")
		}, opts...)
		s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
		require.NoError(t, err)
		tx, err := s.Begin(ctx)
		require.NoError(t, err)
		_, err = tx.Invoke(ctx, "one", "", agent.OnAsked(func(context.Context, ctxperm.ApprovalRequest) { kill() }))
		require.ErrorIs(t, err, tool.ErrPending)
		kill()
	}
	for how, phase := range map[string]revert.Phase{"approver": revert.PhaseFailed, "after a change": revert.PhaseFailed, "before a change": revert.PhasePending} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			ws := filepath.Join(dir, "ws")
			require.NoError(t, os.Mkdir(ws, 0o700))
			cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileItAsks$")
			cmd.Env = append(os.Environ(), inCallKillDir+"="+dir, inCallKillMode+"="+how)
			out, err := cmd.CombinedOutput()
			var ended *exec.ExitError
			require.ErrorAs(t, err, &ended)
			require.Equal(t, -1, ended.ExitCode(), "%s", out)
			require.NoFileExists(t, filepath.Join(ws, "e"))

			rt, end := newKilledRuntime(t, dir, func(ctx context.Context, f *files.Files) error { return putNew(ctx, f, "e") }, agent.SuspendForApproval())
			defer end()
			_, err = rt.Recover(ctx)
			require.NoError(t, err)
			txn, call := "", ""
			for e, err := range rt.Journal().Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindStarted, record.KindAsked}, Limit: 1}) {
				require.NoError(t, err)
				txn, call = e.Header.Txn, e.Header.Call
			}
			_, c, err := revert.LoadCall(ctx, rt.Journal(), call)
			require.NoError(t, err)
			require.Equal(t, phase, c.Phase)
			reply := agent.Answer{Call: call, Approved: true, By: "boss"}
			if phase != revert.PhasePending {
				require.False(t, c.Waits())
				require.Error(t, rt.Answer(ctx, reply), "it waits for nobody")
				rep, err := rt.Revert(ctx, txn, revert.Options{})
				require.NoError(t, err)
				require.True(t, rep.Complete())
				require.NoFileExists(t, filepath.Join(ws, "d"))
				return
			}
			require.NoError(t, rt.Answer(ctx, reply))
			tx, err := rt.ResumeTxn(ctx, txn)
			require.NoError(t, err)
			o, err := tx.Resume(ctx, call)
			require.NoError(t, err, o.Text)
			require.FileExists(t, filepath.Join(ws, "e"), "it goes on in another process")
			require.NoError(t, tx.Commit(ctx))
		})
	}
}

// TestAnswerAfterTheProcessDied: a call that waited where it was, in a process that is gone, takes
// no answer, also before anything is recovered.
func TestAnswerAfterTheProcessDied(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "ws"), 0o700))
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileItAsks$")
	cmd.Env = append(os.Environ(), inCallKillDir+"="+dir, inCallKillMode+"=after a change")
	require.Error(t, cmd.Run())
	rt, end := newKilledRuntime(t, dir, func(context.Context, *files.Files) error { return nil }, agent.SuspendForApproval())
	defer end()
	call := ""
	for e, err := range rt.Journal().Entries(t.Context(), journal.Query{Kinds: []record.Kind{record.KindAsked}, Limit: 1}) {
		require.NoError(t, err)
		call = e.Header.Call
	}
	_, c, err := revert.LoadCall(t.Context(), rt.Journal(), call)
	require.NoError(t, err)
	require.True(t, c.Waits())
	require.True(t, time.Now().Before(c.Asked.Expires))
	err = rt.Answer(t.Context(), agent.Answer{Call: call, Approved: true, By: "boss", RequestDigest: c.Asked.Digest})
	require.ErrorIs(t, err, tool.ErrInvalid)
	require.ErrorContains(t, err, "its process is gone")
}

// TestAskedForAHelper: what a helper's call asks for while it runs is answered neither by
// the helper nor by who handed the grant on, and within that grant.
func TestAskedForAHelper(t *testing.T) {
	by := ""
	boss := &recordingApprover{say: func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		return ctxperm.Approve(by), nil
	}}
	name := "d"
	w := newInner(t, func(ctx context.Context, _ ctxperm.ToolContext, f *files.Files) error { return putNew(ctx, f, name) }, nil, agent.Approver(boss))
	helper, err := w.s.Delegate(t.Context(), perm.Principal{ID: "helper"}, agent.Grant(perm.Access(perm.Call, "tool://one"), perm.Access(perm.Write, "file://workspace/d")))
	require.NoError(t, err)
	tx, err := helper.Begin(t.Context())
	require.NoError(t, err)
	for _, by = range []string{"helper", "coder", "boss"} {
		o, err := tx.Invoke(t.Context(), "one", "")
		require.Equal(t, by == "boss", err == nil, o.Text)
	}
	require.Equal(t, []string{"coder"}, boss.asks[0].Principal.Chain)
	name = "other"
	o, err := tx.Invoke(t.Context(), "one", "")
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Equal(t, "grant", o.Stage)
	require.Len(t, boss.asks, 3, "nobody is asked about more than was handed on")
}
