package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/verify"
)

// anyWrite is the need to write anywhere in the workspace, asked for while the
// call runs.
func anyWrite() []perm.ResourceAccess {
	return []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/**")}
}

// puts is code that gives a file its input as content and then does more.
func puts(name string, then execute) execute {
	return func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error) {
		f, err := handle.Open(tc, "workspace")
		if err == nil {
			err = f.Write(ctx, name, []byte(in), handle.WriteOptions{})
		}
		if err != nil {
			return "", err
		}
		return then(ctx, tc, in)
	}
}

func confined() []tool.Option {
	return []tool.Option{tool.Effect(effect.Reversible), tool.Confined(tool.Handles)}
}

func content(t *testing.T, dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(data)
}

// TestLateToolIsNotProvenAbsent: what a tool that still runs has not done yet it
// may do in a moment.
func TestLateToolIsNotProvenAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		tl, err := tool.CreateWith("send", "", nil, ignoresItsTime(release), tool.Effect(effect.Pivot), timeout, says(verify.Absent("not sent")))
		rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()))
		tx := begin(t, newSession(t, rt))
		out, err := tx.Invoke(t.Context(), "send", "in")
		require.ErrorIs(t, err, tool.ErrUnknown)
		require.Equal(t, tool.StatusUnknown, out.Status)
		rep, err := tx.Revert(t.Context(), revert.Options{})
		require.ErrorIs(t, err, agent.ErrPartialRevert)
		require.Equal(t, revert.TxnRevertedPartial, rep.State)
	})
}

func TestPanickingEngineDenies(t *testing.T) {
	for name, dynamic := range map[string]bool{"before the call": false, "while it runs": true} {
		t.Run(name, func(t *testing.T) {
			engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
				if r.Access.Dynamic == dynamic {
					panic("no")
				}
				return perm.NewDecision(perm.Allow, perm.Details{}), nil
			})
			dir := workspace(t)
			tl, err := tool.CreateWith("put", "", anyWrite(), puts("fresh.txt", returns("", nil)), confined()...)
			rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(engine), agent.Root("workspace", dir))
			tx := begin(t, newSession(t, rt))
			out, err := tx.Invoke(t.Context(), "put", "in")
			require.ErrorIs(t, err, tool.ErrDenied)
			require.Equal(t, "policy", out.Stage)
			require.Contains(t, out.Error.Why, "panicked")
			require.NoFileExists(t, filepath.Join(dir, "fresh.txt"))
			require.NoError(t, tx.Commit(t.Context()), "nothing of the call is in flight")
		})
	}
}

// TestCallEndsThoughAPermitStaysOpen checks that the runtime waits one grace
// period for a permit that the tool does not end. The outcome of the call is
// then unknown.
func TestCallEndsThoughAPermitStaysOpen(t *testing.T) {
	for name, then := range map[string]execute{"panic": panics, "forgotten": returns("ok", nil), "error": returns("", errors.New("boom"))} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var kept ctxperm.Permit
				run := func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error) {
					var err error
					kept, err = ctxperm.Authorize(ctx, tc, perm.Access(perm.Write, "file://workspace/a.txt"))
					require.NoError(t, err)
					return then(ctx, tc, in)
				}
				tl, err := tool.CreateWith("leak", "", anyWrite(), run, confined()...)
				rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()), agent.Limits(tool.Limits{GracePeriod: time.Minute}))
				tx := begin(t, newSession(t, rt))
				began := time.Now()
				out, err := tx.Invoke(t.Context(), "leak", "in")
				require.ErrorIs(t, err, tool.ErrUnknown)
				require.Equal(t, tool.StatusUnknown, out.Status)
				require.Equal(t, time.Minute, time.Since(began))
				_, err = kept.RecordChange(t.Context(), []effect.Change{{Resource: "file://workspace/a.txt"}})
				require.ErrorIs(t, err, ctxperm.ErrClosed, "it reaches nothing any more")
				txn, err := revert.Load(t.Context(), rt.Journal(), tx.ID())
				require.NoError(t, err)
				require.Equal(t, revert.PhaseUnknown, txn.Calls[0].Phase)
			})
		})
	}
}

// TestCommitWaitsForWhatGoesOn checks that a commit waits for operations that
// still run in this process. Another process can revert the committed
// transaction, and does not know of them.
func TestCommitWaitsForWhatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept ctxperm.Permit
		run := func(ctx context.Context, tc ctxperm.ToolContext, _ string) (_ string, err error) {
			kept, err = ctxperm.Authorize(ctx, tc, perm.Access(perm.Write, "file://workspace/a.txt"))
			return "ok", err
		}
		tl, err := tool.CreateWith("leak", "", anyWrite(), run, confined()...)
		rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()), agent.Limits(tool.Limits{GracePeriod: time.Minute}))
		tx := begin(t, newSession(t, rt))
		_, err = tx.Invoke(t.Context(), "leak", "in")
		require.ErrorIs(t, err, tool.ErrUnknown)

		began := time.Now()
		require.ErrorContains(t, tx.Commit(t.Context()), "commit again, or revert")
		require.Equal(t, time.Minute, time.Since(began))
		committed := make(chan error, 1)
		go func() { committed <- tx.Commit(t.Context()) }()
		synctest.Wait()
		require.Empty(t, committed, "it is still going on")
		kept.End()
		require.NoError(t, <-committed)
	})
}

func TestVerifyThatIgnoresItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		tl, err := tool.CreateWith("probe", "", nil, returns("ok", nil), tool.Pure(), tool.VerifyWith(func(context.Context, verify.Subject) verify.Verdict {
			<-release
			return verify.Applied()
		}))
		rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()), agent.Limits(tool.Limits{VerifyTimeout: time.Minute}))
		began := time.Now()
		out, err := begin(t, newSession(t, rt)).Invoke(t.Context(), "probe", "in")
		require.ErrorIs(t, err, tool.ErrVerifyFailed)
		require.EqualValues(t, "cannot_tell", out.Verdict.Presence)
		require.Equal(t, time.Minute, time.Since(began))
	})
}

func TestRevertThatIgnoresItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		tl, err := tool.CreateWith("pay", "", nil, returns("ok", nil), tool.Effect(effect.Compensable), tool.RevertWith("1", func(context.Context, tool.RevertContext) error {
			<-release
			return nil
		}))
		rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()), agent.Limits(tool.Limits{RevertTimeout: time.Minute}))
		tx := begin(t, newSession(t, rt))
		_, err = tx.Invoke(t.Context(), "pay", "in")
		require.NoError(t, err)
		began := time.Now()
		rep, err := tx.Revert(t.Context(), revert.Options{})
		require.ErrorIs(t, err, agent.ErrPartialRevert)
		require.Len(t, rep.Items, 1)
		require.Equal(t, effect.Unknown, rep.Items[0].Outcome)
		require.Equal(t, time.Minute, time.Since(began))
	})
}

// TestMadeUpToolName: a name that no record can hold spoils nothing that comes
// after it.
func TestMadeUpToolName(t *testing.T) {
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", workspace(t)))
	tx := begin(t, newSession(t, rt))
	for _, name := range []string{"\xff", "nul\x00", ""} {
		_, err := tx.Invoke(t.Context(), name, tool.Args{})
		require.ErrorIs(t, err, tool.ErrInvalid)
		invoke(t, tx, "file_read", tool.Args{"path": "a.txt"})
	}
	var counted perm.CountsByTool
	engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		counted = r.Session.Tools
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	rt = newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", workspace(t)), agent.Policy(engine))
	tx = begin(t, newSession(t, rt))
	invoke(t, tx, "file_read", tool.Args{"path": "a.txt"})
	_, err := tx.Invoke(t.Context(), "made_up", tool.Args{})
	require.ErrorIs(t, err, tool.ErrInvalid)
	invoke(t, tx, "file_read", tool.Args{"path": "a.txt"})
	require.Equal(t, 1, counted.Len())
	file, _ := counted.Of("file_read")
	require.Equal(t, perm.Counts{Run: 1}, file.Counts)
}

// TestShownIsWhatWasJournaled: neither the tool nor its Verify can change what a
// call shows once it stands on the journal.
func TestShownIsWhatWasJournaled(t *testing.T) {
	mine := json.RawMessage(`{"amount": 100}`)
	var judged string
	tl, err := tool.FromSpec(tool.Spec{
		Name: "pay", EffectClass: effect.Pure,
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{JSON: mine, Parts: []tool.Part{{MediaType: "a/b", Data: mine}}}, nil
		},
		Verify: func(_ context.Context, s verify.Subject) verify.Verdict {
			judged = string(s.Output)
			copy(s.Output, `{"amount":666}`)
			copy(mine, `{"amount": 777}`)
			return verify.Applied()
		},
	})
	rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()))
	out, err := begin(t, newSession(t, rt)).Invoke(t.Context(), "pay", "in")
	require.NoError(t, err)
	copy(mine, `{"amount": 999}`)
	_, c, err := revert.LoadCall(t.Context(), rt.Journal(), out.Call)
	require.NoError(t, err)
	var journaled tool.Result
	require.NoError(t, json.Unmarshal(c.Done.Output, &journaled))
	require.Equal(t, `{"amount":100}`, judged)
	require.Equal(t, `{"amount":100}`, string(out.Output))
	require.Equal(t, `{"amount":100}`, out.Text)
	require.Equal(t, journaled, out.Result)
	require.Equal(t, `{"amount": 100}`, string(journaled.Parts[0].Data))
}

// TestShownIsTheCallers: what a caller does with a result changes neither the
// journal nor what a repeated call gets.
func TestShownIsTheCallers(t *testing.T) {
	for name, r := range map[string]tool.Result{
		"text":          {Text: "a \"long\" text\n"},
		"text and more": {Text: "text", MediaType: "text/plain", Meta: map[string]string{"a": "b"}},
		"json":          {JSON: json.RawMessage(`{"text":"inside"}`)},
		"both":          {Text: "text", JSON: json.RawMessage(`[1]`)},
		"none":          {},
	} {
		t.Run(name, func(t *testing.T) {
			var judged string
			tl, err := tool.FromSpec(tool.Spec{
				Name: "shows", EffectClass: effect.Pure,
				Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) { return r, nil },
				Verify: func(_ context.Context, s verify.Subject) verify.Verdict {
					judged = string(s.Output)
					return verify.Applied()
				},
			})
			rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()))
			tx := begin(t, newSession(t, rt))
			out, err := tx.Invoke(t.Context(), "shows", "in")
			require.NoError(t, err)
			require.Equal(t, r, out.Result)
			require.JSONEq(t, string(r.Output()), string(out.Output))
			require.JSONEq(t, string(r.Output()), judged)
			for _, text := range [][]byte{out.Output, out.Result.JSON} {
				for i := range text {
					text[i] = 'x'
				}
			}
			_, c, err := revert.LoadCall(t.Context(), rt.Journal(), out.Call)
			require.NoError(t, err)
			var journaled tool.Result
			require.NoError(t, json.Unmarshal(c.Done.Output, &journaled))
			require.Equal(t, r, journaled)
		})
	}
}

// TestVerifyProvesAFailedCall: the Verify of a trusted call that failed may look
// at the call's resources, and what it finds decides.
func TestVerifyProvesAFailedCall(t *testing.T) {
	look := func(ctx context.Context, s verify.Subject) verify.Verdict {
		if s.Resources == nil {
			return verify.CannotTell("no world")
		}
		switch version, err := s.Resources.Version(ctx, "file://workspace/fresh.txt"); {
		case err != nil:
			return verify.CannotTell(err.Error())
		case version == "absent":
			return verify.Absent()
		default:
			return verify.Applied()
		}
	}
	for name, want := range map[string]tool.Status{"absent": tool.StatusFailed, "there": tool.StatusUnknown} {
		t.Run(name, func(t *testing.T) {
			dir := workspace(t)
			run := func(context.Context, ctxperm.ToolContext, string) (string, error) {
				if want == tool.StatusUnknown {
					require.NoError(t, os.WriteFile(filepath.Join(dir, "fresh.txt"), nil, 0o600))
				}
				return "", errors.New("boom")
			}
			needs := []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/fresh.txt")}
			tl, err := tool.CreateWith("put", "", needs, run, tool.Effect(effect.Pivot), tool.VerifyWith(look))
			rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()), agent.Root("workspace", dir))
			out, err := begin(t, newSession(t, rt)).Invoke(t.Context(), "put", "in")
			require.Error(t, err)
			require.Equal(t, want, out.Status, "%+v", out.Error)
		})
	}
}

func TestTextHoldsNoArgument(t *testing.T) {
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", workspace(t)))
	tx := begin(t, newSession(t, rt))
	for _, tc := range []struct {
		tool string
		args tool.Args
	}{
		{"file_read", tool.Args{"path": "s3cret/plans.txt"}},
		{"file_edit", tool.Args{"path": "s3cret/plans.txt", "old": "s3cret-a", "new": "b"}},
		{"file_delete", tool.Args{"path": "s3cret"}},
		{"file_write", tool.Args{"path": "s3cret/plans.txt", "content": "s3cret-b"}},
	} {
		out, err := tx.Invoke(t.Context(), tc.tool, tc.args)
		require.ErrorIs(t, err, tool.ErrFailed, "%s: %s", tc.tool, out.Text)
		require.NotContains(t, out.Text, "s3cret", tc.tool)
		require.NotEmpty(t, out.Text)
	}
}

func TestEngineCannotChangeWhatItIsAskedAbout(t *testing.T) {
	engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		r.Tool.Tags[0], r.Principal.Roles[0] = "harmless", "admin"
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", workspace(t)), agent.Policy(engine))
	s, err := rt.Session(t.Context(), perm.Principal{ID: "coder", Roles: []string{"guest"}})
	require.NoError(t, err)
	invoke(t, begin(t, s), "file_read", tool.Args{"path": "a.txt"})
	require.Equal(t, []string{"guest"}, s.Principal().Roles)
	tl, ok := rt.Tools().Get("file_read")
	require.True(t, ok)
	require.NotContains(t, tl.Spec().Tags, "harmless")
}

// TestCreateRaceIsLostWithoutEffect has another writer create or change the
// file between the record of the change and the change itself. The call fails,
// and the content of the other writer stays.
func TestCreateRaceIsLostWithoutEffect(t *testing.T) {
	for _, name := range []string{"fresh.txt", "a.txt"} {
		t.Run(name, func(t *testing.T) {
			dir, h := workspace(t), hosttest.New(1)
			h.OnPoint = func(id string) error {
				if id != "journal.append.started.changed" {
					return nil
				}
				return os.WriteFile(filepath.Join(dir, name), []byte("theirs"), 0o640)
			}
			tl, err := tool.CreateWith("put", "", anyWrite(), puts(name, returns("ok", nil)), confined()...)
			rt := newRuntime(t, agent.Host(h), agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()), agent.Root("workspace", dir))
			tx := begin(t, newSession(t, rt))
			out, err := tx.Invoke(t.Context(), "put", "ours")
			require.ErrorIs(t, err, tool.ErrFailed, "%+v", out.Error)
			require.Empty(t, out.Changes)
			require.Equal(t, "theirs", content(t, dir, name))
			rep, err := tx.Revert(t.Context(), revert.Options{})
			require.NoError(t, err)
			require.True(t, rep.Complete())
			require.Equal(t, "theirs", content(t, dir, name))
		})
	}
}
