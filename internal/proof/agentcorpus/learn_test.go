package agentcorpus_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"path"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/agent/learn"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/internal/proof/agentcorpus"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// recorder makes the calls of the corpus with tools that only end as the corpus
// says. The policy decides them, and the journal has them.
type recorder struct {
	t       *testing.T
	journal journal.Journal
	runtime *agent.Runtime
	fails   bool // the next call fails
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	engine, err := rego.New(rego.Options{Sources: []rego.Source{{FS: policies.CodingAgent(), NoTests: true}}, Timeout: time.Minute})
	require.NoError(t, err)
	r := &recorder{t: t, journal: journal.Memory()}
	var tools []tool.Tool
	for _, real := range hooks.Tools() {
		s := real.Spec()
		s.Verify = nil
		s.Execute = func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			if r.fails {
				return tool.Result{}, tool.NoEffect(errors.New("it failed"))
			}
			return tool.Result{Text: "done"}, nil
		}
		one, err := tool.FromSpec(s)
		require.NoError(t, err)
		tools = append(tools, one)
	}
	yes := ctxperm.ApproverFunc(func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		return ctxperm.Approve("dev"), nil
	})
	r.runtime, err = agent.New(agent.Root("workspace", t.TempDir()), agent.Policy(engine), agent.Journal(r.journal),
		agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(tools...), agent.Approver(yes))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.runtime.Close()) })
	return r
}

func (r *recorder) session() *agent.Session {
	r.t.Helper()
	s, err := r.runtime.Session(r.t.Context(), perm.Principal{ID: "claude-code"})
	require.NoError(r.t, err)
	return s
}

// call makes a call of the corpus.
func (r *recorder) call(s *agent.Session, repo, as string, args map[string]any, fails bool) tool.Outcome {
	r.t.Helper()
	c, ok := hooks.Find(textOf(r.t, args, "client"))
	require.True(r.t, ok)
	dir := path.Join(home, "src", repo)
	e := hooks.Event{Moment: hooks.BeforeTool, Session: "s", Tool: textOf(r.t, args, "tool"), Dir: dir, Input: input(r.t, as, dir, args)}
	seen, err := c.Preview(r.t.Context(), s, e, dir, true)
	if err != nil {
		return tool.Outcome{}
	}
	tx, err := s.Begin(r.t.Context())
	require.NoError(r.t, err)
	r.fails = fails
	out, _ := tx.Invoke(r.t.Context(), seen.Tool, tool.Args(seen.Args))
	require.NoError(r.t, tx.Commit(r.t.Context()))
	return out
}

// play makes the honest calls of one half, one session of the runtime for each
// session of the corpus.
func (r *recorder) play(h int) {
	r.t.Helper()
	calls, err := agentcorpus.Honest()
	require.NoError(r.t, err)
	sessions := map[string]*agent.Session{}
	for _, c := range calls {
		if half(c.Session) != h {
			continue
		}
		s := sessions[c.Session]
		if s == nil {
			s = r.session()
			sessions[c.Session] = s
		}
		r.call(s, c.Repo, c.Tool, c.Args, c.Exit != nil && *c.Exit != 0)
	}
}

// decisions returns the decisions of all sessions.
func (r *recorder) decisions() iter.Seq2[agent.RecordedDecision, error] {
	return func(yield func(agent.RecordedDecision, error) bool) {
		for e, err := range r.journal.Entries(r.t.Context(), journal.Query{Kinds: []record.Kind{record.KindSession}}) {
			require.NoError(r.t, err)
			for d, err := range agent.RecordedDecisions(r.t.Context(), r.journal, e.Header.Session) {
				if !yield(d, err) {
					return
				}
			}
		}
	}
}

// learned returns the policy of the first half, alone and beside the pack.
func learned(t *testing.T) (p *learn.Policy, alone, beside *rego.Engine) {
	t.Helper()
	r := newRecorder(t)
	r.play(0)
	e, err := learn.Collect(t.Context(), r.journal, r.decisions())
	require.NoError(t, err)
	for _, s := range e.Skipped {
		t.Logf("nothing learned from %d calls: %s", s.Count, s.Why)
	}
	p, err = e.Policy(t.Context(), learn.Options{})
	require.NoError(t, err)
	t.Logf("%d decisions, %d calls to learn from, %d covered, %d rules", e.Decisions, e.Learned, p.Covered, len(p.Rules))
	fs := fstest.MapFS{"learned.rego": {Data: []byte(p.Rego)}, "learned_test.rego": {Data: []byte(p.Test)}}
	alone, err = rego.New(rego.Options{Sources: []rego.Source{{FS: fs}}, Timeout: time.Minute})
	require.NoError(t, err)
	beside, err = rego.New(rego.Options{Sources: []rego.Source{{FS: policies.CodingAgent(), NoTests: true}, {FS: fs, NoTests: true}}, Timeout: time.Minute})
	require.NoError(t, err)
	return p, alone, beside
}

// effect returns the strictest decision about a call.
func effect(t *testing.T, e *rego.Engine, d agent.RecordedDecision) perm.Effect {
	t.Helper()
	all := perm.Allow
	for _, q := range d.Requests {
		got, err := e.Decide(t.Context(), q)
		require.NoError(t, err)
		all = min(all, got.Effect())
	}
	return all
}

// TestLearnedPolicyAllowsTheOtherHalf tries a policy on sessions that it was not
// learned from.
func TestLearnedPolicyAllowsTheOtherHalf(t *testing.T) {
	p, alone, beside := learned(t)
	require.LessOrEqual(t, len(p.Rules), 40)
	r := newRecorder(t)
	r.play(1)
	n, ok, same, byTool := 0, 0, 0, map[string][2]int{}
	for d, err := range r.decisions() {
		require.NoError(t, err)
		if d.Stage != "" || d.Asked {
			continue
		}
		n++
		a := effect(t, alone, d) == perm.Allow
		c := byTool[d.Requests[0].Tool.Name]
		c[0]++
		if a {
			ok++
			c[1]++
		}
		byTool[d.Requests[0].Tool.Name] = c
		if effect(t, beside, d) == perm.Allow {
			same++
		}
	}
	t.Logf("%d calls of the other half that ran unasked: %d allowed alone (%.1f %%), %d beside the pack (%.1f %%)", n, ok, 100*float64(ok)/float64(n), same, 100*float64(same)/float64(n))
	t.Logf("%v", byTool)
	require.GreaterOrEqual(t, ok, 479, "the policy became narrower")
}

// TestLearnedPolicyAsksAboutHostileCalls decides the hostile calls under a policy
// that was learned from honest ones.
func TestLearnedPolicyAsksAboutHostileCalls(t *testing.T) {
	_, alone, beside := learned(t)
	hostile, err := agentcorpus.Hostile()
	require.NoError(t, err)
	r := newRecorder(t)
	for _, c := range hostile {
		r.call(r.session(), "cobra", c.Tool, c.Args, false)
	}
	n := 0
	for d, err := range withSandbox(t, r.decisions()) {
		require.NoError(t, err)
		if len(d.Requests) == 0 {
			continue
		}
		n++
		for name, e := range map[string]*rego.Engine{"alone": alone, "beside the pack": beside} {
			if effect(t, e, d) == perm.Allow {
				t.Errorf("%s: allowed unasked: %s %s", name, d.Requests[0].Tool.Name, d.Requests[0].Call.Args)
			}
		}
	}
	t.Logf("%d hostile calls", n)
}

// TestNothingIsLearnedFromPoisonedSessions: hostile calls that follow untrusted
// content teach nothing, also those that the pack allowed in the sandbox.
func TestNothingIsLearnedFromPoisonedSessions(t *testing.T) {
	hostile, err := agentcorpus.Hostile()
	require.NoError(t, err)
	r := newRecorder(t)
	s := r.session()
	page := map[string]any{"client": "claude-code", "tool": "WebFetch", "url": "https://go.dev/doc"}
	require.Equal(t, tool.StatusDone, r.call(s, "cobra", "client_fetch", page, false).Status)
	ran := 0
	for _, c := range hostile {
		if r.call(s, "cobra", c.Tool, c.Args, false).Status == tool.StatusDone {
			ran++
		}
	}
	e, err := learn.Collect(t.Context(), r.journal, r.decisions())
	require.NoError(t, err)
	p, err := e.Policy(t.Context(), learn.Options{})
	require.NoError(t, err)
	t.Logf("%d hostile calls ran, %d calls to learn from", ran, e.Learned)
	require.Positive(t, ran)
	require.Equal(t, 1, e.Learned, "the page, which was fetched before its content was read")
	require.Len(t, p.Rules, 1)
}

// withSandbox adds, for each command that the pack sent out of the sandbox, the
// same command in the sandbox: a policy without the pack would see that first.
func withSandbox(t *testing.T, all iter.Seq2[agent.RecordedDecision, error]) iter.Seq2[agent.RecordedDecision, error] {
	t.Helper()
	var facts perm.ToolFacts
	for _, one := range hooks.Tools() {
		if one.Name() == "client_shell" {
			facts = one.Facts()
		}
	}
	return func(yield func(agent.RecordedDecision, error) bool) {
		for d, err := range all {
			if !yield(d, err) {
				return
			}
			if err != nil || len(d.Requests) == 0 || d.Requests[0].Tool.Name != "client_shell_observed" {
				continue
			}
			inside := d.Requests[0]
			inside.Tool, inside.Call.EffectClass = facts, "reversible"
			d.Requests = []perm.Request{inside}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// TestLearnedPolicyTests runs the tests that come with a learned policy.
func TestLearnedPolicyTests(t *testing.T) {
	_, alone, _ := learned(t)
	report, err := alone.Test(t.Context())
	require.NoError(t, err)
	for _, f := range report.Failed() {
		t.Errorf("%s: %s", f.Name, f.Text)
	}
	require.Empty(t, report.Uncovered)
}
