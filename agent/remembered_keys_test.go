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
	"github.com/remit-dev/remit/tool"
)

const asksForKeys = `package remit
allow contains "all" if input.access.action
ask contains {"reason": "keyed", "remember": "session", "keys": {k | some k in split(input.call.args.content, " ")}} if {
	input.access.action == "write"
	input.call.args.content != "never"
}
ask contains {"reason": "keyed", "remember": "never"} if input.call.args.content == "never"
redact contains "/args/content" if startswith(input.call.args.content, "hidden")
`

// TestApprovalsCoverTheirKeys checks that an approval covers calls of its session
// without other keys, whatever their accesses, also after a restart.
func TestApprovalsCoverTheirKeys(t *testing.T) {
	ctx := context.Background()
	for name, test := range map[string]struct {
		asked string // keys
		how   string // how it was approved: "" as the policy says
		later string
		other bool // in another session
		after time.Duration
		runs  bool
	}{
		"the same":                {asked: "a", later: "a", runs: true},
		"fewer":                   {asked: "a b", later: "b", runs: true},
		"more":                    {asked: "a", later: "a b"},
		"another":                 {asked: "a", later: "b"},
		"only once":               {asked: "a", how: "once", later: "a"},
		"kept afterwards":         {asked: "a", how: "keep", later: "a", runs: true},
		"never":                   {asked: "never", later: "never"},
		"another session":         {asked: "a", later: "a", other: true},
		"another session, always": {asked: "a", how: "always", later: "a", other: true, runs: true},
		"other keys, always":      {asked: "a", how: "always", later: "b"},
		"a day later":             {asked: "a", later: "a", after: 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.engine = mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": asksForKeys}})
			rt, end := o.open()
			s := newSession(t, rt)
			tx := begin(t, s)
			out, err := tx.Invoke(ctx, "file_write", write("a.txt", test.asked).Input)
			require.ErrorIs(t, err, tool.ErrPending)
			yes := agent.Answer{Call: out.Call, Approved: true, By: "boss", Once: test.how == "once" || test.how == "keep"}
			if test.how == "always" {
				_, err = rt.RememberApproval(ctx, yes, ctxperm.RememberScope{Always: true})
			} else {
				_, kept := rt.KeepApproval(ctx, out.Call)
				require.ErrorIs(t, kept, tool.ErrInvalid, "nobody has approved it")
				err = rt.Answer(ctx, yes)
			}
			require.NoError(t, err)
			_, err = tx.Resume(ctx, out.Call)
			require.NoError(t, err)
			if test.how == "keep" {
				id, err := rt.KeepApproval(ctx, out.Call)
				require.NoError(t, err)
				require.NotEmpty(t, id)
			}
			require.NoError(t, tx.Commit(ctx))
			token := s.Token()
			end()
			rt, _ = o.open()
			s, err = rt.ResumeSession(ctx, token)
			require.NoError(t, err)
			if test.other {
				s = newSession(t, rt)
			}
			o.host.Advance(test.after)
			_, err = begin(t, s).Invoke(ctx, "file_write", write("b.txt", test.later).Input)
			if !test.runs {
				require.ErrorIs(t, err, tool.ErrPending)
				return
			}
			require.NoError(t, err)
		})
	}
}

// TestApproversAndKeys checks that the answer of an approver covers its keys, and
// that no answer covers a call which the policy never remembers.
func TestApproversAndKeys(t *testing.T) {
	ctx, asked := context.Background(), []string{}
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": asksForKeys}})
	o := newOffice(t)
	rt := newRuntime(t, agent.Tools(o.tools...), agent.Root("workspace", t.TempDir()), agent.Policy(e), agent.Approver(ctxperm.ApproverFunc(func(_ context.Context, r ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		asked = append(asked, r.Remember.Scope)
		if r.Remember.Scope == perm.RememberNever {
			return ctxperm.ApproveAndRemember("boss", ctxperm.RememberScope{}), nil
		}
		return ctxperm.Approve("boss"), nil
	})))
	tx := begin(t, newSession(t, rt))
	for _, content := range []string{"a", "a", "b", "never", "never", "a", "hidden1", "hidden2"} {
		_, err := tx.Invoke(ctx, "file_write", write("a.txt", content).Input)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"session", "session", "never", "never", "never", "never"}, asked, "a redacted key could be that of other values")
	all, err := rt.Grants(ctx)
	require.NoError(t, err)
	require.Len(t, all, 2)
}
