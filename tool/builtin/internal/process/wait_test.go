package process_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

func mustSee() []perm.Reason {
	return []perm.Reason{{Text: "preview", At: "a.rego:1", Set: "require"}}
}

func askPolicy(r perm.Request) perm.Decision {
	d := perm.Details{Reasons: []perm.Reason{{Text: "somebody says so", At: "a.rego:2", Set: "ask"}}}
	if r.Purpose == perm.PurposeRun {
		d.Requires = mustSee()
	}
	return perm.NewDecision(perm.Ask, d)
}

func previewing(r perm.Request) perm.Decision {
	if r.Purpose != perm.PurposeRun {
		return allowed(perm.Details{})
	}
	return allowed(perm.Details{Requires: mustSee()})
}

// wait begins a call that has to wait.
func (w programSetup) wait(t *testing.T, name string, input any) (*agent.Txn, tool.Outcome) {
	t.Helper()
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	o, err := tx.Invoke(t.Context(), name, input)
	require.ErrorIs(t, err, tool.ErrPending, o.Text)
	require.Equal(t, tool.StatusPending, o.Status)
	return tx, o
}

func (w programSetup) call(t *testing.T, id string) *revert.Call {
	t.Helper()
	_, c, err := revert.LoadCall(t.Context(), w.rt.Journal(), id)
	require.NoError(t, err)
	return c
}

// asks is the question that a call waits with.
func (w programSetup) asks(t *testing.T, id string) string {
	t.Helper()
	return w.call(t, id).Asked.Digest
}

// TestWait checks that an approver can see at any time what a program wants to
// change. The runtime applies the changes only after the program has made the
// same ones again.
func TestWait(t *testing.T) {
	w := newProgramSetup(t, deciding(previewing), agent.SuspendForApproval())
	fill(t, w.dir)
	before := listing(t, w.dir, true)
	tx, o := w.wait(t, "shell_run", tool.Args{"script": "sed -i s/aaa/bbb/ a; rm b; chmod 700 src"})
	equal(t, before, listing(t, w.dir, true), "nothing happened")
	require.Contains(t, o.Error.Fix, "a person looks at what it wants to change")
	require.NotContains(t, o.Error.Fix, "remit ", "a model reads it, and is given no command that approves")

	c := w.call(t, o.Call)
	require.Equal(t, revert.PhasePending, c.Phase)
	require.Equal(t, "apply", c.Asked.Purpose)
	require.Len(t, c.Asked.Access, 3)
	require.Empty(t, c.Asked.Approvals)
	for _, line := range []string{"-aaa", "+bbb", "workspace/b", "deleted file", "workspace/src"} {
		require.Contains(t, c.Asked.Preview, line)
	}
	again, err := tx.Resume(t.Context(), o.Call)
	require.ErrorIs(t, err, tool.ErrPending)
	require.Equal(t, tool.StatusPending, again.Status, "nobody has said anything yet")
	unseen := agent.Answer{Call: o.Call, Approved: true, By: "boss"}
	require.ErrorIs(t, w.rt.Answer(t.Context(), unseen), tool.ErrInvalid, "they have not said that they looked")
	_, err = w.rt.RememberApproval(t.Context(), unseen, ctxperm.RememberScope{})
	require.ErrorIs(t, err, tool.ErrInvalid)

	require.NoError(t, w.rt.Answer(t.Context(), agent.Answer{Call: o.Call, Approved: true, By: "boss", Why: "looks fine", RequestDigest: w.asks(t, o.Call)}))
	done, err := tx.Resume(t.Context(), o.Call)
	require.NoError(t, err, done.Text)
	require.Len(t, done.Changes, 3)
	data, err := os.ReadFile(filepath.Join(w.dir, "a"))
	require.NoError(t, err)
	require.Equal(t, "bbb\n", string(data))
	ran := w.call(t, o.Call)
	require.Nil(t, ran.Started.Approval)
	require.Len(t, ran.Approvals, 1)
	require.Equal(t, record.Approval{By: "boss", Digest: c.Asked.Digest}, ran.Approvals[0].Approval)
	require.Equal(t, "apply", ran.Approvals[0].Purpose)
	require.Len(t, ran.Approvals[0].Access, 3)
	_, err = tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	equal(t, before, listing(t, w.dir, true), "reverted")
}

// TestWaitTwice checks that an approval to run a program does not approve its
// changes.
func TestWaitTwice(t *testing.T) {
	w := newFastSetup(t, deciding(askPolicy), agent.SuspendForApproval())
	tx, o := w.wait(t, "shell_run", tool.Args{"script": "echo x > new"})
	first := w.call(t, o.Call).Asked
	require.Empty(t, first.Purpose, "the program has not run")
	require.NoError(t, w.rt.Answer(t.Context(), agent.Answer{Call: o.Call, Approved: true, By: "boss", RequestDigest: w.asks(t, o.Call)}))
	out, err := tx.Resume(t.Context(), o.Call)
	if out.Status == tool.StatusDenied && strings.Contains(out.Error.Why, "remit doctor") {
		t.Skip("this machine has no sandbox: " + out.Error.Why)
	}
	require.ErrorIs(t, err, tool.ErrPending, out.Text)
	require.NoFileExists(t, filepath.Join(w.dir, "new"))
	c := w.call(t, o.Call)
	late := agent.Answer{Call: o.Call, Approved: true, By: "boss", RequestDigest: first.Digest}
	require.ErrorIs(t, w.rt.Answer(t.Context(), late), tool.ErrInvalid, "it asks something else by now")
	require.Nil(t, c.Answered, "what was said counts for the question that it answered")
	require.Len(t, c.Asked.Approvals, 1)
	require.Equal(t, record.Approval{By: "boss", Digest: first.Digest}, c.Asked.Approvals[0].Approval)
	require.Contains(t, c.Asked.Preview, "+x")

	require.NoError(t, w.rt.Answer(t.Context(), agent.Answer{Call: o.Call, Approved: true, By: "chief", RequestDigest: w.asks(t, o.Call)}))
	out, err = tx.Resume(t.Context(), o.Call)
	require.NoError(t, err, out.Text)
	require.FileExists(t, filepath.Join(w.dir, "new"))
	ran := w.call(t, o.Call)
	require.Equal(t, []string{"boss", "chief"}, []string{ran.Started.Approval.By, ran.Approvals[0].By})
}

// TestWaitInVain: what is refused, or is not what was shown, is not done, and is told
// as denied.
func TestWaitInVain(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		meanwhile    func(t *testing.T, w programSetup, call string)
		why          string
	}{
		{"refused", "echo x > a", func(t *testing.T, w programSetup, call string) {
			require.NoError(t, w.rt.Answer(t.Context(), agent.Answer{Call: call, Approved: false, By: "boss", Why: "not like this", RequestDigest: w.asks(t, call)}))
		}, "not like this"},
		{"other files", "cat b > a", func(t *testing.T, w programSetup, call string) {
			require.NoError(t, w.rt.Answer(t.Context(), agent.Answer{Call: call, Approved: true, By: "boss", RequestDigest: w.asks(t, call)}))
			require.NoError(t, os.WriteFile(filepath.Join(w.dir, "b"), []byte("hostile\n"), 0o644))
		}, "what the call would change now is not what was asked about"},
		{"the same words over other bytes", "head -c 2000000 b > big; echo x > after", func(t *testing.T, w programSetup, call string) {
			require.NoError(t, w.rt.Answer(t.Context(), agent.Answer{Call: call, Approved: true, By: "boss", RequestDigest: w.asks(t, call)}))
			long := slices.Repeat([]byte("l\x00"), 1_000_000)
			long[1_999_000] = 'm'
			require.NoError(t, os.WriteFile(filepath.Join(w.dir, "b"), long, 0o644))
		}, "what the call would change now is not what was asked about"},
		{"nothing any more", "test -f gone && exit; echo x > a", func(t *testing.T, w programSetup, call string) {
			require.NoError(t, w.rt.Answer(t.Context(), agent.Answer{Call: call, Approved: true, By: "boss", RequestDigest: w.asks(t, call)}))
			require.NoError(t, os.WriteFile(filepath.Join(w.dir, "gone"), nil, 0o644))
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newProgramSetup(t, deciding(previewing), agent.SuspendForApproval())
			fill(t, w.dir)
			if strings.HasPrefix(tt.name, "the same") {
				require.NoError(t, os.WriteFile(filepath.Join(w.dir, "b"), slices.Repeat([]byte("l\x00"), 1_000_000), 0o644))
			}
			tx, o := w.wait(t, "shell_run", tool.Args{"script": tt.script})
			tt.meanwhile(t, w, o.Call)
			before := listing(t, w.dir, true)
			out, err := tx.Resume(t.Context(), o.Call)
			equal(t, before, listing(t, w.dir, true), "nothing happened")
			if tt.why == "" { // a program without changes needs no approval
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, tool.ErrDenied, out.Text)
			require.Equal(t, "approver", out.Stage)
			require.Contains(t, out.Error.Why, tt.why)
			_, err = tx.Resume(t.Context(), o.Call)
			require.ErrorIs(t, err, tool.ErrInvalid, "it waits no more")
		})
	}
}

// TestWaitNotRemembered checks that a remembered approval does not cover
// changes that an approver must see. It can cover a call without a preview.
func TestWaitNotRemembered(t *testing.T) {
	asked := 0
	seen := agent.Approver(ctxperm.ApproverFunc(func(_ context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		if a.Preview != "" {
			asked++
		}
		return ctxperm.ApproveAndRemember("boss", ctxperm.RememberScope{}), nil
	}))
	for _, tt := range []struct {
		decide func(perm.Request) perm.Decision
		want   int
	}{{previewing, 2}, {askPolicy, 2}, {func(r perm.Request) perm.Decision {
		return perm.NewDecision(perm.Ask, perm.Details{Reasons: []perm.Reason{{Text: "somebody says so"}}})
	}, 1}} {
		asked = 0
		w := newProgramSetup(t, deciding(tt.decide), seen)
		fill(t, w.dir)
		for _, content := range []string{"a", "a"} {
			tx, err := w.s.Begin(t.Context())
			require.NoError(t, err)
			o, err := tx.Invoke(t.Context(), "shell_run", tool.Args{"script": "echo " + content + " > new"})
			require.NoError(t, err, o.Text)
			_, err = tx.Revert(t.Context(), revert.Options{})
			require.NoError(t, err)
		}
		require.Equal(t, tt.want, asked)
	}
}

// TestWaitWithMore: a call that did more than run its program waits where it is, with the
// difference. Once that was approved it goes on; else what it did is reverted.
func TestWaitWithMore(t *testing.T) {
	needs := []perm.ResourceAccess{
		perm.Access(perm.Execute, "exec://touch"), perm.Access(perm.Read, "file://workspace/**"), perm.Access(perm.Write, "file://workspace/**"),
	}
	both, err := tool.CreateWith("both", "Writes a file and runs a program.", needs, func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
		f, err := files.Open(tc, "workspace")
		if err != nil {
			return "", err
		}
		if err := f.Write(ctx, "mine", []byte("x"), files.WriteOptions{}); err != nil {
			return "", err
		}
		_, err = handle.Run(ctx, tc, handle.Cmd{Argv: []string{"touch", "theirs"}, Root: "workspace"})
		return "", err
	}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	require.NoError(t, err)
	for name, answers := range map[string]bool{"approved": true, "nobody answers": false} {
		t.Run(name, func(t *testing.T) {
			limit := time.Millisecond
			if answers {
				limit = time.Hour
			}
			w := newProgramSetup(t, agent.SuspendForApproval(), agent.Tools(both), agent.Limits(tool.Limits{Answer: limit}), deciding(func(r perm.Request) perm.Decision {
				if r.Purpose == perm.PurposeApply {
					return askPolicy(r)
				}
				return allowed(perm.Details{})
			}))
			tx, err := w.s.Begin(t.Context())
			require.NoError(t, err)
			out, err := tx.Invoke(t.Context(), "both", "", agent.OnAsked(func(_ context.Context, ask ctxperm.ApprovalRequest) {
				if !answers {
					return
				}
				if !strings.Contains(ask.Preview, "theirs") {
					t.Errorf("the difference is not shown: %s", ask.Preview)
				}
				if err := w.rt.Answer(t.Context(), agent.Answer{Call: ask.Call, Approved: true, By: "boss", RequestDigest: ask.Digest}); err != nil {
					t.Error(err)
				}
			}))
			if answers {
				require.NoError(t, err, out.Text)
				require.FileExists(t, filepath.Join(w.dir, "theirs"))
				ran := w.call(t, out.Call)
				require.Len(t, ran.Approvals, 1)
				require.Equal(t, "apply", ran.Approvals[0].Purpose)
				return
			}
			require.ErrorIs(t, err, tool.ErrDenied, out.Text)
			require.Contains(t, out.Error.Why, "no approver answered within")
			require.NoFileExists(t, filepath.Join(w.dir, "mine"))
			require.NoFileExists(t, filepath.Join(w.dir, "theirs"))
		})
	}
}

// TestWaitUses: a call that runs again has used its grant once.
func TestWaitUses(t *testing.T) {
	w := newFastSetup(t, deciding(previewing), agent.SuspendForApproval())
	s, err := w.rt.Session(t.Context(), perm.Principal{ID: "once"}, agent.MaxUses(1))
	require.NoError(t, err)
	tx, err := s.Begin(t.Context())
	require.NoError(t, err)
	o, err := tx.Invoke(t.Context(), "shell_run", tool.Args{"script": "echo x > new"})
	if o.Status == tool.StatusDenied && strings.Contains(o.Error.Why, "remit doctor") {
		t.Skip("this machine has no sandbox: " + o.Error.Why)
	}
	require.ErrorIs(t, err, tool.ErrPending, o.Text)
	require.NoError(t, w.rt.Answer(t.Context(), agent.Answer{Call: o.Call, Approved: true, By: "boss", RequestDigest: w.asks(t, o.Call)}))
	o, err = tx.Resume(t.Context(), o.Call)
	require.NoError(t, err, o.Text)
	_, err = tx.Invoke(t.Context(), "shell_run", tool.Args{"script": "true"})
	require.ErrorIs(t, err, tool.ErrDenied)
}

// TestWaitUnderAnotherPolicy: where the policy asks by now whether the program runs at
// all, what was said of its changes does not answer that.
func TestWaitUnderAnotherPolicy(t *testing.T) {
	decide := previewing
	w := newProgramSetup(t, deciding(func(r perm.Request) perm.Decision { return decide(r) }), agent.SuspendForApproval())
	tx, o := w.wait(t, "shell_run", tool.Args{"script": "echo x > new"})
	require.NoError(t, w.rt.Answer(t.Context(), agent.Answer{Call: o.Call, Approved: true, By: "boss", RequestDigest: w.asks(t, o.Call)}))
	decide = askPolicy
	out, err := tx.Resume(t.Context(), o.Call)
	require.ErrorIs(t, err, tool.ErrDenied, out.Text)
	require.Contains(t, out.Error.Why, "the policy or the input has changed since")
	require.NoFileExists(t, filepath.Join(w.dir, "new"))
}

// TestWaitWithNetwork checks a program whose network effects are real before
// its changes are approved. The journal holds its start first. The call waits
// in place and does not run again.
func TestWaitWithNetwork(t *testing.T) {
	needs := []perm.ResourceAccess{
		perm.Access(perm.Execute, "exec://sh"), perm.Access(perm.Connect, "exec://sh"),
		perm.Access(perm.Read, "file://workspace/**"), perm.Access(perm.Write, "file://workspace/**"),
	}
	var w programSetup
	for _, how := range []tool.Confinement{tool.Handles, tool.Trusted} {
		sends, err := tool.CreateWith("sends", "Runs a program that may send something.", needs, func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
			_, c, err := revert.LoadCall(ctx, w.rt.Journal(), tc.Call().ID)
			if err != nil || c.Started == nil {
				return "", errors.New("the journal does not know yet")
			}
			_, err = handle.Run(ctx, tc, handle.Cmd{Argv: []string{"sh", "-c", "echo sent > new"}, Root: "workspace", Network: true})
			return "", err
		}, tool.Effect(effect.Pivot), tool.Confined(how))
		require.NoError(t, err)
		w = newProgramSetup(t, agent.SuspendForApproval(), agent.Tools(sends), agent.Limits(tool.Limits{Answer: time.Millisecond}), deciding(func(r perm.Request) perm.Decision {
			if r.Purpose == perm.PurposeApply {
				return askPolicy(r)
			}
			return allowed(perm.Details{})
		}))
		tx, err := w.s.Begin(t.Context())
		require.NoError(t, err)
		out, err := tx.Invoke(t.Context(), "sends", "")
		require.ErrorIs(t, err, tool.ErrUnknown, "%s: %s", how, out.Text)
		require.Contains(t, out.Error.Why, "no approver answered within")
		require.NoFileExists(t, filepath.Join(w.dir, "new"))
	}
}

// TestNetworkIsNotReversible: no declaration makes what a program sends go back.
func TestNetworkIsNotReversible(t *testing.T) {
	for class, needs := range map[effect.Class][]perm.ResourceAccess{
		effect.Pure: {
			perm.Access(perm.Execute, "exec://sh"), perm.Access(perm.Connect, "exec://sh"), perm.Access(perm.Read, "file://workspace/**"),
		},
		effect.Reversible: {
			perm.Access(perm.Execute, "exec://sh"), perm.Access(perm.Connect, "exec://sh"),
			perm.Access(perm.Read, "file://workspace/**"), perm.Access(perm.Write, "file://workspace/**"),
		},
	} {
		sends, err := tool.CreateWith("sends", "Runs a program that may send something.", needs, func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
			_, err := handle.Run(ctx, tc, handle.Cmd{Argv: []string{"sh", "-c", "echo sent > new"}, Root: "workspace", Network: true})
			return "", err
		}, tool.Effect(class), tool.Confined(tool.Handles))
		require.NoError(t, err)
		w := newProgramSetup(t, allowAll(), agent.Tools(sends))
		tx, err := w.s.Begin(t.Context())
		require.NoError(t, err)
		out, err := tx.Invoke(t.Context(), "sends", "")
		require.Error(t, err)
		require.Contains(t, out.Error.Why, "the call is declared "+string(class))
		require.NoFileExists(t, filepath.Join(w.dir, "new"))
	}
}
