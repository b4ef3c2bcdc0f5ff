package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
)

// says answers what a call waits with.
func (w inner) says(t *testing.T, call string, approved bool) {
	t.Helper()
	require.NoError(t, w.rt.Answer(t.Context(), agent.Answer{Call: call, Approved: approved, By: "boss", Why: "as it is", RequestDigest: w.call(t, call).Asked.Digest}))
}

// TestWaitsInside: a call that has had no effect waits, and runs again once what it asked
// for was approved; each question of it is asked once.
func TestWaitsInside(t *testing.T) {
	runs := 0
	w := newInner(t, func(ctx context.Context, tc ctxperm.ToolContext, f *files.Files) error {
		runs++
		if _, err := f.ReadFile(ctx, "a"); err != nil {
			return nil // the tool ignores the error
		}
		p, err := ctxperm.Authorize(ctx, tc, perm.Access(perm.Write, "file://workspace/d"), perm.Access(perm.Write, "file://workspace/e"))
		if err != nil {
			return err
		}
		p.End()
		return errors.Join(putNew(ctx, f, "d"), putNew(ctx, f, "e"))
	}, nil, agent.SuspendForApproval())
	tx := w.begin(t)
	o, err := tx.Invoke(t.Context(), "one", "")
	require.ErrorIs(t, err, tool.ErrPending, o.Text)
	first := w.call(t, o.Call)
	require.Equal(t, revert.PhasePending, first.Phase)
	require.True(t, first.Asked.During)
	require.Equal(t, []record.Access{{Action: "read", Resource: "file://workspace/a"}}, first.Asked.Access)
	again, err := tx.Resume(t.Context(), o.Call)
	require.ErrorIs(t, err, tool.ErrPending)
	require.Contains(t, again.Error.Why, "a person looks at it")
	require.Equal(t, 1, runs, "it does not run before it was approved")

	w.says(t, o.Call, true)
	require.NotContains(t, first.Asked.Earlier()+o.Error.Why, "question")
	o, err = tx.Resume(t.Context(), o.Call)
	require.ErrorIs(t, err, tool.ErrPending)
	w.has(t, "a", "b", "c")
	second := w.call(t, o.Call)
	require.Len(t, second.Asked.Access, 2)
	for _, text := range []string{second.Asked.Earlier(), o.Error.Why} {
		require.Contains(t, text, "this is question 2 of the call; approved before, and still counted: read file://workspace/a (by boss)")
	}
	require.Equal(t, []record.Approved{{Approval: record.Approval{By: "boss", Digest: first.Asked.Digest}, Access: first.Asked.Access}}, second.Asked.Approvals)

	w.says(t, o.Call, true)
	out, err := tx.Resume(t.Context(), o.Call)
	require.NoError(t, err, out.Text)
	require.Equal(t, 3, runs)
	w.has(t, "a", "b", "c", "d", "e")
	done := w.call(t, o.Call)
	require.Len(t, done.Approvals, 2)
	require.Equal(t, first.Asked.Digest, done.Approvals[0].Digest)
	require.Equal(t, second.Asked.Digest, done.Approvals[1].Digest)
}

// TestWaitsInsideInVain: what was refused is not run again, nor what was asked under
// another policy.
func TestWaitsInsideInVain(t *testing.T) {
	revision := "r1"
	engine := perm.EngineFunc(func(ctx context.Context, r perm.Request) (perm.Decision, error) {
		d, err := asksInside(ctx, r)
		return perm.NewDecision(d.Effect(), perm.Details{Reasons: d.Reasons(), Revision: revision}), err
	})
	for _, approved := range []bool{false, true} {
		runs := 0
		w := newInner(t, func(ctx context.Context, _ ctxperm.ToolContext, f *files.Files) error {
			runs++
			return putNew(ctx, f, "d")
		}, nil, agent.SuspendForApproval(), agent.Policy(engine))
		tx := w.begin(t)
		o, err := tx.Invoke(t.Context(), "one", "")
		require.ErrorIs(t, err, tool.ErrPending, o.Text)
		w.says(t, o.Call, approved)
		if approved {
			revision = "r2"
		}
		o, err = tx.Resume(t.Context(), o.Call)
		require.ErrorIs(t, err, tool.ErrDenied)
		require.Contains(t, o.Error.Why, map[bool]string{false: "refused by boss: as it is", true: "the policy"}[approved])
		require.Equal(t, 1, runs)
		w.has(t, "a", "b", "c")
	}
}

// TestRefusedQuestion: the denial of a call that waited tells of the accesses and the reason that a person was asked about,
// and not of the rule that let the call begin.
func TestRefusedQuestion(t *testing.T) {
	rule, remits := perm.Reason{Text: "a person looks at it", At: "p.rego:1", Set: "ask"}, perm.Reason{Text: "the next start follows it", Set: "ask"}
	for name, tt := range map[string]struct {
		reason perm.Reason
		fix    string
	}{
		"asked by a rule": {rule, "let another person approve it, or change the rule that asks"},
		"asked by none":   {remits, "let another person approve it"},
	} {
		t.Run(name, func(t *testing.T) {
			engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
				if r.Access.Dynamic {
					return perm.NewDecision(perm.Ask, perm.Details{Reasons: []perm.Reason{tt.reason}, Revision: "r1"}), nil
				}
				return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "all", At: "p.rego:3", Set: "allow"}}, Revision: "r1"}), nil
			})
			var told []perm.DecisionRecord
			ear := filter.Filter{Name: "ear", Denied: func(_ context.Context, f filter.Call, _ tool.Outcome) { told = append(told, f.Decision()) }}
			w := newInner(t, func(ctx context.Context, tc ctxperm.ToolContext, _ *files.Files) error {
				p, err := ctxperm.Authorize(ctx, tc, perm.Access(perm.Write, "file://workspace/d"), perm.Access(perm.Delete, "file://workspace/e"))
				if err == nil {
					p.End()
				}
				return err
			}, nil, agent.SuspendForApproval(), agent.Policy(engine), agent.Filters(ear))
			tx := w.begin(t)
			o, err := tx.Invoke(t.Context(), "one", "")
			require.ErrorIs(t, err, tool.ErrPending, o.Text)
			w.says(t, o.Call, false)
			o, err = tx.Resume(t.Context(), o.Call)
			require.ErrorIs(t, err, tool.ErrDenied)
			asked := perm.DecisionRecord{Effect: "ask", Reasons: []perm.Reason{tt.reason}, Revision: "r1"}
			require.Equal(t, &asked, o.Decision)
			require.Equal(t, "Denied: "+tt.reason.Text+". Repeating the call cannot help.", o.Text)
			require.Equal(t, "write file://workspace/d and 1 more: refused by boss: as it is", o.Error.Why)
			require.Equal(t, tt.fix, o.Error.Fix)
			require.Equal(t, []perm.DecisionRecord{asked}, told)
			denied := w.call(t, o.Call).Denied
			require.Equal(t, record.Access{Action: "write", Resource: "file://workspace/d"}, denied.Access)
			require.Equal(t, []record.Access{{Action: "delete", Resource: "file://workspace/e"}}, denied.Others)
			require.True(t, denied.During)
		})
	}
}

// TestWaitsWhileItRuns: a call that changed something waits where it is, for an answer by
// the journal, and goes on by itself.
func TestWaitsWhileItRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		reply agent.Answer
		want  []string
		why   string
	}{
		"approved": {agent.Answer{Approved: true, By: "boss"}, []string{"a", "b", "c", "d", "e"}, ""},
		"refused":  {agent.Answer{By: "boss", Why: "not this one"}, []string{"a", "b", "c"}, "refused by boss: not this one"},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := newInner(t, func(ctx context.Context, _ ctxperm.ToolContext, f *files.Files) error {
				return errors.Join(putNew(ctx, f, "d"), putNew(ctx, f, "e"))
			}, []tool.Option{func(s *tool.Spec) { s.Hints.Timeout = time.Minute }}, agent.SuspendForApproval(), agent.Policy(perm.EngineFunc(func(ctx context.Context, r perm.Request) (perm.Decision, error) {
				r.Access.Dynamic = r.Access.Dynamic && r.Access.Resource.Path == "e"
				return asksInside(ctx, r)
			})))
			var heard []ctxperm.ApprovalRequest
			answered := make(chan struct{})
			o, err := w.begin(t).Invoke(t.Context(), "one", "", agent.OnAsked(func(_ context.Context, ask ctxperm.ApprovalRequest) {
				defer close(answered)
				heard = append(heard, ask)
				time.Sleep(50 * time.Second)
				w.has(t, "a", "b", "c", "d")
				c := w.call(t, ask.Call)
				require.Equal(t, revert.PhaseStarted, c.Phase)
				require.True(t, c.Waits())
				require.Equal(t, ask.Digest, c.Asked.Digest)
				for _, bad := range []agent.Answer{{Approved: true, By: "coder"}, {Approved: true, By: "boss", RequestDigest: "sha256:other"}} {
					bad.Call = ask.Call
					require.Error(t, w.rt.Answer(t.Context(), bad))
				}
				tt.reply.Call, tt.reply.RequestDigest = ask.Call, ask.Digest
				require.NoError(t, w.rt.Answer(t.Context(), tt.reply))
				require.ErrorIs(t, w.rt.Answer(t.Context(), tt.reply), tool.ErrInvalid, "it is answered")
			}))
			<-answered // the call goes on while the answer is given again
			require.Len(t, heard, 1)
			require.True(t, heard[0].Running)
			require.Equal(t, time.Minute, heard[0].InPlace, "how long it waits is said")
			w.has(t, tt.want...)
			c := w.call(t, o.Call)
			require.False(t, c.Waits())
			if tt.why != "" {
				require.ErrorIs(t, err, tool.ErrDenied)
				require.Contains(t, o.Error.Why, tt.why)
				require.Equal(t, "all", o.Reverted)
				require.Empty(t, c.Approvals)
				return
			}
			require.NoError(t, err, o.Text)
			require.Len(t, c.Approvals, 1)
			require.Equal(t, record.Approval{By: "boss", Digest: heard[0].Digest}, c.Approvals[0].Approval)
		}))
	}
}

// TestNobodyAnswersInTime: a call that waits where it is ends when its time for that is
// up, and so does one whose caller gives up.
func TestNobodyAnswersInTime(t *testing.T) {
	for name, cancels := range map[string]bool{"in time": false, "cancelled": true} {
		t.Run(name, inBubble(func(t *testing.T) {
			trusted, err := tool.CreateWith("mine", "Of nobody's handles.", []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/**")}, func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
				_, err := ctxperm.Authorize(ctx, tc, perm.Access(perm.Write, "file://workspace/d"))
				return "", tool.NoEffect(err)
			})
			require.NoError(t, err)
			rt, err := agent.New(agent.Tools(trusted), agent.Root("workspace", t.TempDir()), agent.SuspendForApproval(), agent.Log(slog.New(slog.DiscardHandler)), agent.Policy(perm.EngineFunc(asksInside)), agent.Limits(tool.Limits{Answer: time.Minute}))
			require.NoError(t, err)
			defer func() { require.NoError(t, rt.Close()) }()
			s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
			require.NoError(t, err)
			tx, err := s.Begin(t.Context())
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			began := time.Now()
			o, err := tx.Invoke(ctx, "mine", "", agent.OnAsked(func(waiting context.Context, _ ctxperm.ApprovalRequest) {
				if cancels {
					cancel()
				}
				<-waiting.Done()
			}))
			if cancels {
				require.ErrorIs(t, err, tool.ErrCancelled, o.Text)
				return
			}
			require.ErrorIs(t, err, tool.ErrDenied, o.Text)
			require.Contains(t, o.Error.Why, "no approver answered within 1m0s")
			require.Equal(t, time.Minute, time.Since(began))
			require.ErrorIs(t, rt.Answer(t.Context(), agent.Answer{Call: o.Call, Approved: true, By: "boss"}), tool.ErrInvalid, "it waits no more")
		}))
	}
}

// TestAnswersInsideLast checks that the journal holds an approval request
// of a running call durably before the runtime reports it. An approval is
// durable before it has an effect.
func TestAnswersInsideLast(t *testing.T) {
	j := &watchedJournal{Journal: journal.Memory()}
	asksForE := agent.Policy(perm.EngineFunc(func(ctx context.Context, r perm.Request) (perm.Decision, error) {
		r.Access.Dynamic = r.Access.Dynamic && r.Access.Resource.Path == "e"
		return asksInside(ctx, r)
	}))
	w := newInner(t, func(ctx context.Context, tc ctxperm.ToolContext, f *files.Files) error {
		if err := putNew(ctx, f, "d"); err != nil {
			return err
		}
		p, err := ctxperm.Authorize(ctx, tc, perm.Access(perm.Write, "file://workspace/e"))
		if err != nil {
			return err
		}
		defer p.End()
		require.Equal(t, record.KindApproved, j.lasting()[len(j.lasting())-1])
		return nil
	}, nil, agent.SuspendForApproval(), agent.Journal(j), asksForE)
	answered := make(chan struct{})
	o, err := w.begin(t).Invoke(t.Context(), "one", "", agent.OnAsked(func(_ context.Context, ask ctxperm.ApprovalRequest) {
		defer close(answered)
		if last := j.lasting(); last[len(last)-1] != record.KindAsked {
			t.Errorf("the question is not there for good: %v", last)
		}
		if err := w.rt.Answer(t.Context(), agent.Answer{Call: ask.Call, Approved: true, By: "boss", RequestDigest: ask.Digest}); err != nil {
			t.Error(err)
		}
	}))
	require.NoError(t, err, o.Text)
	<-answered
}
