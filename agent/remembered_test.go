package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

const asksAll = `package remit
ask contains "every write" if input.access.action in {"write", "call"}
ask contains "long ones" if count(input.call.args.content) > 5
allow contains "reading" if input.access.action in {"read", "list"}
`

func asksOffice(t *testing.T) *office {
	o := newOffice(t, payTool(t))
	o.engine = mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": asksAll}})
	return o
}

func write(path, content string) agent.BatchCall {
	return agent.BatchCall{Tool: "file_write", Input: tool.Args{"path": path, "content": content}}
}

func pay(amount int) agent.BatchCall {
	return agent.BatchCall{Tool: "pay", Input: tool.Args{"amount": amount, "how": "ok"}}
}

// TestRememberedApprovals: what is remembered of one approval answers for exactly
// what it was given for, here and after a restart.
func TestRememberedApprovals(t *testing.T) {
	ctx := context.Background()
	for name, test := range map[string]struct {
		asked  agent.BatchCall
		how    ctxperm.RememberScope
		later  agent.BatchCall
		by     perm.Principal
		after  time.Duration
		other  bool // in another session
		handed bool // in a session that was handed on
		runs   bool
	}{
		"the same":                       {asked: write("a.txt", "1"), later: write("a.txt", "1"), runs: true},
		"other content":                  {asked: write("a.txt", "1"), later: write("a.txt", "2"), runs: true},
		"other content, same input":      {asked: write("a.txt", "1"), how: ctxperm.RememberScope{SameInput: true}, later: write("a.txt", "2")},
		"another file":                   {asked: write("a.txt", "1"), later: write("b.txt", "1")},
		"another reason":                 {asked: write("a.txt", "1"), later: write("a.txt", "123456")},
		"fewer reasons":                  {asked: write("a.txt", "123456"), later: write("a.txt", "1"), runs: true},
		"another tool":                   {asked: write("a.txt", "1"), later: agent.BatchCall{Tool: "file_edit", Input: tool.Args{"path": "a.txt", "old": "a", "new": "b"}}},
		"just in time":                   {asked: write("a.txt", "1"), how: ctxperm.RememberScope{For: time.Hour}, later: write("a.txt", "2"), after: 59 * time.Minute, runs: true},
		"too late":                       {asked: write("a.txt", "1"), how: ctxperm.RememberScope{For: time.Hour}, later: write("a.txt", "2"), after: time.Hour},
		"a day later":                    {asked: write("a.txt", "1"), later: write("a.txt", "2"), after: 24 * time.Hour},
		"another session":                {asked: write("a.txt", "1"), later: write("a.txt", "2"), other: true},
		"another session, always":        {asked: write("a.txt", "1"), how: ctxperm.RememberScope{Always: true}, later: write("a.txt", "2"), other: true, runs: true},
		"another principal, always":      {asked: write("a.txt", "1"), how: ctxperm.RememberScope{Always: true}, later: write("a.txt", "2"), other: true, by: perm.Principal{ID: "painter"}},
		"handed on to the same, always":  {asked: write("a.txt", "1"), how: ctxperm.RememberScope{Always: true}, later: write("a.txt", "2"), handed: true},
		"no access but the call":         {asked: pay(1), later: pay(1), runs: true},
		"no access but the call, higher": {asked: pay(1), later: pay(2)},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				o := asksOffice(t)
				rt, end := o.open()
				s := newSession(t, rt)
				tx := begin(t, s)
				out, err := tx.Invoke(ctx, test.asked.Tool, test.asked.Input)
				require.ErrorIs(t, err, tool.ErrPending)
				id, err := rt.RememberApproval(ctx, agent.Answer{Call: out.Call, Approved: true, By: "boss", Why: "fine"}, test.how)
				require.NoError(t, err)
				_, err = tx.Resume(ctx, out.Call)
				require.NoError(t, err)
				require.NoError(t, tx.Commit(ctx))
				token := s.Token()
				if restart {
					end()
					rt, _ = o.open()
					s, err = rt.ResumeSession(ctx, token)
					require.NoError(t, err)
				}
				o.host.Advance(test.after)
				who := s.Principal()
				if test.by.ID != "" {
					who = test.by
				}
				switch {
				case test.other:
					s, err = rt.Session(ctx, who)
				case test.handed:
					s, err = s.Delegate(ctx, who)
				}
				require.NoError(t, err)
				tx = begin(t, s)
				out, err = tx.Invoke(ctx, test.later.Tool, test.later.Input)
				if !test.runs {
					require.ErrorIs(t, err, tool.ErrPending)
					return
				}
				require.NoError(t, err)
				_, c, err := revert.LoadCall(ctx, rt.Journal(), out.Call)
				require.NoError(t, err)
				require.Equal(t, "boss", c.Started.Approval.By)
				require.Equal(t, id, c.Started.Approval.Grant)
				require.NoError(t, rt.Revoke(ctx, id, "boss", ""))
				_, err = tx.Invoke(ctx, test.later.Tool, test.later.Input)
				require.ErrorIs(t, err, tool.ErrPending, "taken away, somebody is asked again")
			})
		}
	}
}

// TestRememberedForNobody checks that an approver cannot remember more than the
// request asks for. A principal cannot approve its own calls. A rejection stays
// in force.
func TestRememberedForNobody(t *testing.T) {
	ctx := context.Background()
	o := asksOffice(t)
	rt, _ := o.open()
	lead, err := rt.Session(ctx, perm.Principal{ID: "lead"})
	require.NoError(t, err)
	tx := begin(t, hand(t, lead))
	ask := func() string {
		out, err := tx.Invoke(ctx, "file_write", write("a.txt", "1").Input)
		require.ErrorIs(t, err, tool.ErrPending)
		return out.Call
	}
	call := ask()
	for _, by := range []string{"helper", "lead"} {
		_, err := rt.RememberApproval(ctx, agent.Answer{Call: call, Approved: true, By: by}, ctxperm.RememberScope{})
		require.ErrorIs(t, err, tool.ErrDenied, by)
		require.ErrorIs(t, rt.Answer(ctx, agent.Answer{Call: call, Approved: true, By: by}), tool.ErrDenied, by)
	}
	_, err = rt.RememberApproval(ctx, agent.Answer{Call: call, Approved: true, By: "boss"}, ctxperm.RememberScope{For: -1})
	require.ErrorIs(t, err, tool.ErrInvalid)
	_, err = rt.RememberApproval(ctx, agent.Answer{Call: call, Approved: true, By: ""}, ctxperm.RememberScope{})
	require.ErrorIs(t, err, tool.ErrInvalid)
	out, _ := tx.Resume(ctx, call)
	require.Equal(t, tool.StatusPending, out.Status, "none of these was an answer")

	refused, kept := ask(), ask()
	require.NoError(t, rt.Answer(ctx, agent.Answer{Call: refused, Approved: false, By: "boss", Why: "not this one"}))
	_, err = rt.RememberApproval(ctx, agent.Answer{Call: kept, Approved: true, By: "boss"}, ctxperm.RememberScope{})
	require.NoError(t, err)
	_, err = tx.Resume(ctx, refused)
	require.ErrorContains(t, err, "not this one")
	_, err = tx.Resume(ctx, call)
	require.NoError(t, err, "it waits, and what was remembered answers it")
	all, err := rt.Grants(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"session standing", "remembered standing"}, []string{all[0].Kind + " " + all[0].State, all[1].Kind + " " + all[1].State})
}

// TestApproverRemembers: also one who answers at once can say so.
func TestApproverRemembers(t *testing.T) {
	ctx, n := context.Background(), 0
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": asksAll}})
	rt := newRuntime(t, agent.Tools(payTool(t)), agent.Policy(e), agent.Approver(ctxperm.ApproverFunc(func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		n++
		return ctxperm.ApproveAndRemember("boss", ctxperm.RememberScope{}), nil
	})))
	tx := begin(t, newSession(t, rt))
	for _, amount := range []int{1, 1, 2, 1} {
		_, err := tx.Invoke(ctx, "pay", pay(amount).Input)
		require.NoError(t, err)
	}
	require.Equal(t, 2, n)
	require.True(t, ctxperm.ApproveAndRemember("", ctxperm.RememberScope{}).Remembered().IsAbsent(), "no approver approved")
}
