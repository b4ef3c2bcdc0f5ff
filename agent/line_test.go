package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

type execute = func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error)

func returns(out string, err error) execute {
	return func(context.Context, ctxperm.ToolContext, string) (string, error) { return out, err }
}

func waits(ctx context.Context, _ ctxperm.ToolContext, _ string) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func ignoresItsTime(release chan struct{}) execute {
	return func(context.Context, ctxperm.ToolContext, string) (string, error) {
		<-release
		return "late", nil
	}
}

func panics(context.Context, ctxperm.ToolContext, string) (string, error) { panic("no") }

func timeout(s *tool.Spec) { s.Hints.Timeout = time.Millisecond }

func says(v verify.Verdict) tool.Option {
	return tool.VerifyWith(func(context.Context, verify.Subject) verify.Verdict { return v })
}

// TestOutcomes is the table of outcome, effect class and confinement. A failure
// that provably had no effect ends the call as failed. If the runtime cannot
// determine the effect, the call ends as unknown.
func TestOutcomes(t *testing.T) {
	boom := errors.New("boom")
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	pure, reversible, pivot := tool.Pure(), tool.Effect(effect.Reversible), tool.Effect(effect.Pivot)
	handles := tool.Confined(tool.Handles)
	raw, err := os.ReadFile("../docs/reference/outcomes.md")
	require.NoError(t, err)
	documented := string(raw)
	for _, tc := range []struct {
		name string
		run  execute
		opts []tool.Option
		want tool.Status
		is   error
	}{
		{"done, pure", returns("ok", nil), []tool.Option{pure}, tool.StatusDone, nil},
		{"done, pivot", returns("ok", nil), []tool.Option{pivot}, tool.StatusDone, nil},
		{"done, undeclared", returns("ok", nil), nil, tool.StatusDone, nil},
		{"done, verified", returns("ok", nil), []tool.Option{pivot, says(verify.Applied())}, tool.StatusDone, nil},
		{"error, pure", returns("", boom), []tool.Option{pure}, tool.StatusFailed, tool.ErrFailed},
		{"error, handles", returns("", boom), []tool.Option{reversible, handles}, tool.StatusFailed, tool.ErrFailed},
		{"error, trusted", returns("", boom), []tool.Option{pivot}, tool.StatusUnknown, tool.ErrUnknown},
		{"error, trusted, proven by the tool", returns("", tool.NoEffect(boom)), []tool.Option{pivot}, tool.StatusFailed, tool.ErrFailed},
		{"error, trusted, proven by its Verify", returns("", boom), []tool.Option{pivot, says(verify.Absent())}, tool.StatusFailed, tool.ErrFailed},
		{"error, trusted, its Verify finds it", returns("", boom), []tool.Option{pivot, says(verify.Applied())}, tool.StatusUnknown, tool.ErrUnknown},
		{"error, trusted, its Verify cannot tell", returns("", boom), []tool.Option{pivot, says(verify.CannotTell())}, tool.StatusUnknown, tool.ErrUnknown},
		{"blocked by the tool", returns("", tool.Blocked("not today")), []tool.Option{pivot}, tool.StatusDenied, tool.ErrDenied},
		{"panic, pure", panics, []tool.Option{pure}, tool.StatusFailed, tool.ErrFailed},
		{"panic, handles", panics, []tool.Option{reversible, handles}, tool.StatusFailed, tool.ErrFailed},
		{"panic, trusted", panics, []tool.Option{pivot}, tool.StatusUnknown, tool.ErrUnknown},
		{"timeout, pure", waits, []tool.Option{pure, timeout}, tool.StatusTimeout, tool.ErrTimeout},
		{"timeout, handles", waits, []tool.Option{reversible, handles, timeout}, tool.StatusTimeout, tool.ErrTimeout},
		{"timeout, trusted", waits, []tool.Option{pivot, timeout}, tool.StatusUnknown, tool.ErrUnknown},
		{"timeout that the tool ignores", ignoresItsTime(release), []tool.Option{pure, timeout}, tool.StatusTimeout, tool.ErrTimeout},
		{"does not verify", returns("ok", nil), []tool.Option{pivot, says(verify.Absent("not there"))}, tool.StatusVerifyFailed, tool.ErrVerifyFailed},
		{"cannot tell, but declares to", returns("ok", nil), []tool.Option{pivot, says(verify.CannotTell())}, tool.StatusVerifyFailed, tool.ErrVerifyFailed},
		{"panicking Verify", returns("ok", nil), []tool.Option{pure, tool.VerifyWith(func(context.Context, verify.Subject) verify.Verdict { panic("no") })}, tool.StatusVerifyFailed, tool.ErrVerifyFailed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tl, err := tool.CreateWith("probe", "", nil, tc.run, tc.opts...)
			require.NoError(t, err)
			require.Contains(t, documented, documentedCase(tc.name, tl, tc.want))
			rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()))
			out, err := begin(t, newSession(t, rt)).Invoke(context.Background(), "probe", "in")
			require.Equal(t, tc.want, out.Status, "%+v", out.Error)
			require.ErrorIs(t, err, tc.is)
			require.Equal(t, tc.want.OK(), err == nil)
			require.NotEmpty(t, out.Text)
			if !tc.want.OK() {
				require.JSONEq(t, "null", string(out.Output), "no result is shown of a call that is no success")
				require.Zero(t, out.Result)
			}
		})
	}
}

// documentedCase is how docs/reference/outcomes.md begins the line of a case.
func documentedCase(name string, tl tool.Tool, want tool.Status) string {
	class := string(tl.Spec().EffectClass)
	if class == "" {
		class = "undeclared"
	}
	return fmt.Sprintf("| %s | %s | %s | `%s` | ", name, class, tl.Spec().Confinement, want)
}

func TestCancelledCall(t *testing.T) {
	for _, tc := range []struct {
		name string
		opt  tool.Option
		want tool.Status
	}{{"pure", tool.Pure(), tool.StatusCancelled}, {"pivot", tool.Effect(effect.Pivot), tool.StatusUnknown}} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			run := func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error) {
				cancel()
				return waits(ctx, tc, in)
			}
			tl, err := tool.CreateWith("probe", "", nil, run, tc.opt)
			rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(allowAll()))
			out, err := begin(t, newSession(t, rt)).Invoke(ctx, "probe", "in")
			require.Equal(t, tc.want, out.Status)
			require.Error(t, err)
		})
	}
}

// TestDeniedNeverEntersExecute checks that the runtime does not run the code of
// a denied call, regardless of the stage that denied it. The journal holds the
// denial with its stage. No field of the outcome looks like success.
func TestDeniedNeverEntersExecute(t *testing.T) {
	decide := func(e perm.Effect, d perm.Details) perm.Engine {
		return perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) { return perm.NewDecision(e, d), nil })
	}
	for _, tc := range []struct {
		name  string
		opts  []agent.Option
		sess  []agent.SessionOption
		stage string
	}{
		{"policy denies", []agent.Option{agent.Policy(decide(perm.Deny, perm.Details{}))}, nil, "policy"},
		{"zero decision", []agent.Option{agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) { return perm.Decision{}, nil }))}, nil, "policy"},
		{"nil engine", []agent.Option{agent.Policy(perm.EngineFunc(nil))}, nil, "policy"},
		{"allow with an error", []agent.Option{agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
			return perm.NewDecision(perm.Allow, perm.Details{}), errors.New("half-way")
		}))}, nil, "policy"},
		{"hold", []agent.Option{agent.Policy(decide(perm.Hold, perm.Details{}))}, nil, "policy"},
		{"unmet requirement", []agent.Option{agent.Policy(decide(perm.Allow, perm.Details{Requires: []perm.Reason{{Text: "verify"}}}))}, nil, "policy"},
		{"unknown requirement", []agent.Option{agent.Policy(decide(perm.Allow, perm.Details{Requires: []perm.Reason{{Text: "luck"}}}))}, nil, "policy"},
		{"grant", []agent.Option{agent.Policy(allowAll())}, []agent.SessionOption{agent.Grant()}, "grant"},
		{"ask without an approver", []agent.Option{agent.Policy(decide(perm.Ask, perm.Details{}))}, nil, "approver"},
		{"ask, zero answer", []agent.Option{agent.Policy(decide(perm.Ask, perm.Details{})), agent.Approver(ctxperm.ApproverFunc(nil))}, nil, "approver"},
		{"ask, approved by who asks", []agent.Option{agent.Policy(decide(perm.Ask, perm.Details{})), approver(ctxperm.Approve("coder"), nil)}, nil, "approver"},
		{"ask, approved with an error", []agent.Option{agent.Policy(decide(perm.Ask, perm.Details{})), approver(ctxperm.Approve("boss"), errors.New("late"))}, nil, "approver"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			entered := false
			tl, err := tool.Create("probe", "", func(context.Context, string) (string, error) {
				entered = true
				return "", nil
			}, tool.Pure())
			rt := newRuntime(t, append(tc.opts, agent.Tools(mustTool(t, tl, err)))...)
			tx := begin(t, newSession(t, rt, tc.sess...))
			out, err := tx.Invoke(context.Background(), "probe", "in")
			require.ErrorIs(t, err, tool.ErrDenied)
			require.Equal(t, tool.StatusDenied, out.Status)
			require.Equal(t, tc.stage, out.Stage)
			require.False(t, entered)
			require.Equal(t, 3, out.ExitCode())

			txn, err := revert.Load(context.Background(), rt.Journal(), tx.ID())
			require.NoError(t, err)
			require.Len(t, txn.Calls, 1)
			require.Equal(t, revert.PhaseDenied, txn.Calls[0].Phase)
			require.Equal(t, tc.stage, txn.Calls[0].Denied.Stage)
		})
	}
	t.Run("control: approved by somebody else", func(t *testing.T) {
		tl, err := tool.Create("probe", "", func(context.Context, string) (string, error) { return "ran", nil }, tool.Pure())
		rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(decide(perm.Ask, perm.Details{})), approver(ctxperm.Approve("boss"), nil))
		tx := begin(t, newSession(t, rt))
		out, err := tx.Invoke(context.Background(), "probe", "in")
		require.NoError(t, err)
		txn, err := revert.Load(context.Background(), rt.Journal(), tx.ID())
		require.NoError(t, err)
		require.Equal(t, "ran", out.Text)
		require.Equal(t, "boss", txn.Calls[0].Started.Approval.By)
	})
}

func approver(a ctxperm.Answer, err error) agent.Option {
	return agent.Approver(ctxperm.ApproverFunc(func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) { return a, err }))
}

func TestInvalidIsRefusedBeforePolicy(t *testing.T) {
	asked := false
	engine := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		asked = true
		return perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{{Text: "control", Set: "deny"}}}), nil
	})
	type args struct {
		Path  string `json:"path"`
		Count int    `json:"count,omitempty"`
	}
	needs := []perm.ResourceAccess{{Action: perm.Read, Resource: "file://workspace/{path}"}}
	tl, err := tool.CreateTyped("look", "", needs, func(context.Context, ctxperm.ToolContext, args) (int, error) { return 0, nil }, tool.Pure())
	rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Policy(engine))
	tx := begin(t, newSession(t, rt))
	for _, tc := range []struct {
		name, tool string
		input      any
		want       string
	}{
		{"unknown tool", "lok", tool.Args{}, `did you mean "look"?`},
		{"duplicate key", "look", json.RawMessage(`{"path":"a","path":"b"}`), "path"},
		{"case variant", "look", json.RawMessage(`{"path":"a","Count":1}`), "count"},
		{"unknown argument", "look", tool.Args{"path": "a", "depth": 1}, "depth"},
		{"wrong type", "look", tool.Args{"path": 7}, "path"},
		{"missing", "look", tool.Args{}, "path"},
		{"not JSON", "look", json.RawMessage(`{`), "input"},
		{"outside its root", "look", tool.Args{"path": "../x"}, "leaves its root"},
		{"absolute", "look", tool.Args{"path": "/etc/passwd"}, "leaves its root"},
		{"text for an object", "look", "a", "object"},
		{"not UTF-8", "look", tool.Args{"path": "\xff"}, "UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked = false
			out, err := tx.Invoke(context.Background(), tc.tool, tc.input)
			require.ErrorIs(t, err, tool.ErrInvalid)
			require.Equal(t, tool.StatusInvalid, out.Status)
			require.Contains(t, out.Error.Why, tc.want)
			require.False(t, asked, "nobody is asked about an invalid call")
		})
	}
	t.Run("control", func(t *testing.T) {
		_, err := tx.Invoke(context.Background(), "look", tool.Args{"path": "a"})
		require.ErrorIs(t, err, tool.ErrDenied)
		require.True(t, asked)
	})
	txn, err := revert.Load(context.Background(), rt.Journal(), tx.ID())
	require.NoError(t, err)
	last := txn.Calls[len(txn.Calls)-1]
	require.Equal(t, revert.PhaseDenied, last.Phase)
}
