package learn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/agent/learn"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// rules allow what the tests do, and have one way to be asked, denied and
// redacted.
const rules = `package remit

allow contains "all"

ask contains "a person decides" if endswith(input.access.resource.path, "ask.txt")

deny contains "never" if endswith(input.access.resource.path, "never.txt")

redact contains "/args/token" if input.call.args.token

ensure contains "the file stays" if input.call.args.path == "a/unverified.txt"
`

type bench struct {
	t       *testing.T
	journal journal.Journal
	runtime *agent.Runtime
}

func newBench(t *testing.T) *bench {
	t.Helper()
	spec := tool.Spec{
		Name: "look", Description: "Reads.", EffectClass: effect.Pure, Destination: tool.NoDestination,
		Needs: []perm.ResourceAccess{perm.Access(perm.Read, "file://workspace/{path}")},
		Input: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"token":{"type":"string"},"fails":{"type":"boolean"}}}`),
		Execute: func(_ context.Context, _ ctxperm.ToolContext, raw json.RawMessage) (tool.Result, error) {
			if strings.Contains(string(raw), `"fails":true`) {
				return tool.Result{}, tool.NoEffect(errors.New("it failed"))
			}
			return tool.Result{Text: "content"}, nil
		},
	}
	look, err := tool.FromSpec(spec)
	require.NoError(t, err)
	spec.Name, spec.OutputContent = "fetch", &provenance.Content{Trust: provenance.Untrusted}
	fetch, err := tool.FromSpec(spec)
	require.NoError(t, err)
	get := tool.Spec{
		Name: "get", Description: "Gets a page.", EffectClass: effect.Pure, Destination: tool.ModelChosen,
		Needs: []perm.ResourceAccess{perm.Access(perm.Connect, "https://{host}/")},
		Input: json.RawMessage(`{"type":"object","required":["host"],"properties":{"host":{"type":"string"}}}`),
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{Text: "page"}, nil
		},
	}
	page, err := tool.FromSpec(get)
	require.NoError(t, err)
	yes := ctxperm.ApproverFunc(func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		return ctxperm.Approve("dev"), nil
	})
	b := &bench{t: t, journal: journal.Memory()}
	b.runtime, err = agent.New(agent.Root("workspace", t.TempDir()), agent.Journal(b.journal), agent.Log(slog.New(slog.DiscardHandler)),
		agent.Tools(look, fetch, page), agent.Approver(yes), agent.Policy(load(t, rules, "")))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.runtime.Close()) })
	return b
}

func load(t *testing.T, policy, tests string) *rego.Engine {
	t.Helper()
	fs := fstest.MapFS{"policy.rego": {Data: []byte(policy)}}
	if tests != "" {
		fs["policy_test.rego"] = &fstest.MapFile{Data: []byte(tests)}
	}
	e, err := rego.Load(rego.Source{FS: fs})
	require.NoError(t, err)
	return e
}

func (b *bench) session() *agent.Session {
	b.t.Helper()
	s, err := b.runtime.Session(b.t.Context(), perm.Principal{ID: "coder"})
	require.NoError(b.t, err)
	return s
}

// call makes one call in a transaction that commits.
func (b *bench) call(s *agent.Session, name string, args tool.Args) {
	b.t.Helper()
	tx, err := s.Begin(b.t.Context())
	require.NoError(b.t, err)
	_, _ = tx.Invoke(b.t.Context(), name, args)
	require.NoError(b.t, tx.Commit(b.t.Context()))
}

func (b *bench) learn(s *agent.Session) (*learn.Evidence, *learn.Policy) {
	b.t.Helper()
	e, err := learn.Collect(b.t.Context(), b.journal, agent.RecordedDecisions(b.t.Context(), b.journal, s.ID()))
	require.NoError(b.t, err)
	p, err := e.Policy(b.t.Context(), learn.Options{})
	require.NoError(b.t, err)
	report, err := load(b.t, p.Rego, p.Test).Test(b.t.Context())
	require.NoError(b.t, err)
	require.Empty(b.t, report.Failed(), p.Rego)
	require.Empty(b.t, report.Uncovered, p.Rego)
	return e, p
}

// TestNeverLearned: nothing is learned from a call that did not go well, or that
// says nothing about what is safe.
func TestNeverLearned(t *testing.T) {
	for why, do := range map[string]func(b *bench, s *agent.Session){
		"the call ended failed":                        func(b *bench, s *agent.Session) { b.call(s, "look", tool.Args{"path": "a/b.txt", "fails": true}) },
		"the policy refused the call":                  func(b *bench, s *agent.Session) { b.call(s, "look", tool.Args{"path": "a/never.txt"}) },
		"a person was asked":                           func(b *bench, s *agent.Session) { b.call(s, "look", tool.Args{"path": "a/ask.txt"}) },
		"an argument is redacted":                      func(b *bench, s *agent.Session) { b.call(s, "look", tool.Args{"path": "a/b.txt", "token": "x"}) },
		"the call names a file that usually holds":     func(b *bench, s *agent.Session) { b.call(s, "look", tool.Args{"path": "a/.env"}) },
		"the call names a file that usually holds sec": func(b *bench, s *agent.Session) { b.call(s, "look", tool.Args{"path": "deploy/server.pem"}) },
		"did not verify|reverted|ended failed":         func(b *bench, s *agent.Session) { b.call(s, "look", tool.Args{"path": "a/unverified.txt"}) },
		"the transaction of the call is open": func(b *bench, s *agent.Session) {
			tx, err := s.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Invoke(t.Context(), "look", tool.Args{"path": "a/b.txt"})
			require.NoError(t, err)
		},
		"the call was reverted": func(b *bench, s *agent.Session) {
			tx, err := s.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Invoke(t.Context(), "look", tool.Args{"path": "a/b.txt"})
			require.NoError(t, err)
			_, err = tx.Revert(t.Context(), revert.Options{})
			require.NoError(t, err)
		},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBench(t)
			s := b.session()
			do(b, s)
			e, p := b.learn(s)
			require.Zero(t, e.Learned)
			require.Empty(t, p.Rules)
			require.Len(t, e.Skipped, 1)
			require.Regexp(t, why, e.Skipped[0].Why)
		})
	}
}

// TestPoisonedSession: nothing is learned from what a session does after it read
// untrusted content, also if each of its calls was allowed and went well.
func TestPoisonedSession(t *testing.T) {
	b := newBench(t)
	s := b.session()
	b.call(s, "look", tool.Args{"path": "docs/before.txt"})
	b.call(s, "fetch", tool.Args{"path": "docs/page.txt"})
	for i := range 9 {
		b.call(s, "look", tool.Args{"path": fmt.Sprintf("attacker/%d.txt", i)})
		b.call(s, "get", tool.Args{"host": fmt.Sprintf("h%d.example.com", i)})
	}
	e, p := b.learn(s)
	require.Equal(t, 2, e.Learned)
	require.NotContains(t, p.Rego, "attacker")
	require.NotContains(t, p.Rego, "example.com")
	require.Equal(t, 18, e.Skipped[0].Count)
}

// TestThresholds: few files and hosts are named, and many make their folder and
// their domain known.
func TestThresholds(t *testing.T) {
	b := newBench(t)
	s := b.session()
	for _, path := range []string{"src/1.go", "src/2.go", "few/1.go", "few/2.go"} {
		b.call(s, "look", tool.Args{"path": path})
	}
	for _, host := range []string{"a.example.com", "b.example.com", "one.github.io", "two.github.io", "three.github.io"} {
		b.call(s, "get", tool.Args{"host": host})
	}
	_, p := b.learn(s)
	require.Contains(t, p.Rego, `file_path in {"few/1.go", "few/2.go", "src/1.go", "src/2.go"}`)
	require.Contains(t, p.Rego, `input.access.resource.host in {"a.example.com", "b.example.com", "one.github.io", "three.github.io", "two.github.io"}`)

	b.call(s, "look", tool.Args{"path": "src/3.go"})
	b.call(s, "get", tool.Args{"host": "c.example.com"})
	_, p = b.learn(s)
	require.Contains(t, p.Rego, `in_folder({"src"})`)
	require.Contains(t, p.Rego, `file_path in {"few/1.go", "few/2.go"}`)
	require.Contains(t, p.Rego, `endswith(concat("", [".", input.access.resource.host]), ".example.com")`)
	require.NotContains(t, p.Rego, `".github.io")`, "below it, each name belongs to another owner")

	e := load(t, p.Rego, "")
	for path, want := range map[string]perm.Effect{"src/new.go": perm.Allow, "src/new.py": perm.Ask, "src/.git/a.go": perm.Ask, "few/3.go": perm.Ask, "src/id_rsa.go": perm.Ask} {
		require.Equal(t, want, decide(t, e, path), path)
	}
}

func decide(t *testing.T, e *rego.Engine, path string) perm.Effect {
	t.Helper()
	r, err := perm.ParseResource("file://workspace/" + path)
	require.NoError(t, err)
	d, err := e.Decide(t.Context(), perm.Request{
		Purpose: perm.PurposeRun, Tool: perm.ToolFacts{Name: "look"}, Access: perm.AccessFacts{Action: perm.Read, Resource: r.Facts()},
		Call: perm.CallFacts{Args: json.RawMessage("{}")},
	}.Filled())
	require.NoError(t, err)
	return d.Effect()
}

// TestRefusedKeepsFoldersNarrow: a folder in which a call was denied, or a person
// was asked, is not allowed as a whole.
func TestRefusedKeepsFoldersNarrow(t *testing.T) {
	for _, refused := range []string{"src/never.txt", "src/ask.txt"} {
		b := newBench(t)
		s := b.session()
		for i := range 5 {
			b.call(s, "look", tool.Args{"path": fmt.Sprintf("src/%d.txt", i)})
		}
		b.call(s, "look", tool.Args{"path": refused})
		_, p := b.learn(s)
		require.NotContains(t, p.Rego, `in_folder({"src"})`)
		require.Equal(t, perm.Ask, decide(t, load(t, p.Rego, ""), refused))
		require.Contains(t, p.Rego, "# - 1 call, look: read file://workspace/"+refused)
	}
}

// TestTextsOfCallsStayTexts: a name that a model made up cannot end a comment or a
// text of the policy.
func TestTextsOfCallsStayTexts(t *testing.T) {
	b := newBench(t)
	s := b.session()
	for _, path := range []string{"a\"} allow contains \"x", "b\n}\nallow contains \"x\"\n#.txt", "c\\", "d\u2028e", "`f`"} {
		b.call(s, "look", tool.Args{"path": path})
	}
	b.call(s, "look", tool.Args{"path": "g\nallow contains \"x\"\n/never.txt"})
	_, p := b.learn(s)
	require.Equal(t, perm.Ask, decide(t, load(t, p.Rego, ""), "x/other.txt"))
	require.NotContains(t, p.Rego, "\nallow contains \"x\"")
}

// TestMaxRules: what does not fit is listed.
func TestMaxRules(t *testing.T) {
	b := newBench(t)
	s := b.session()
	b.call(s, "look", tool.Args{"path": "a.txt"})
	b.call(s, "look", tool.Args{"path": "b.txt"})
	b.call(s, "get", tool.Args{"host": "example.com"})
	e, _ := b.learn(s)
	p, err := e.Policy(t.Context(), learn.Options{MaxRules: 1})
	require.NoError(t, err)
	require.Len(t, p.Rules, 1)
	require.Equal(t, 2, p.Covered)
	require.Contains(t, p.Rego, "# - 1 call, connect to hosts that calls named; more than 1 rules")
}

// TestTighten: unused rules are found, and used ones get narrower rules.
func TestTighten(t *testing.T) {
	b := newBench(t)
	s := b.session()
	b.call(s, "look", tool.Args{"path": "src/a.txt"})
	e, _ := b.learn(s)
	uses, err := e.Tighten(t.Context(), load(t, "package remit\n\nallow contains \"reads\" if input.access.action == \"read\"\n\nallow contains \"writes\" if input.access.action == \"write\"\n", ""), learn.Options{})
	require.NoError(t, err)
	require.Len(t, uses, 2)
	require.Equal(t, 1, uses[0].Count)
	require.Contains(t, uses[0].Narrower, `file_path == "src/a.txt"`)
	require.Zero(t, uses[1].Count)
}

// TestCommentsStayOnTheirLine: the name of a program can have any character.
func TestCommentsStayOnTheirLine(t *testing.T) {
	require.Equal(t, "a  allow b c", learn.Comment("a\n\rallow\u2028b\x00c"))
}
