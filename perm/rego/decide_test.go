package rego_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// request returns a read of a file in the workspace.
func request() perm.Request {
	return perm.Request{
		Principal: perm.Principal{ID: "coder", Kind: "agent", Roles: []string{"dev"}},
		Session:   perm.SessionFacts{ID: "s", Tools: perm.NewCountsByTool(map[string]perm.ToolCounts{"file_read": {Counts: perm.Counts{Run: 2}}})},
		Txn:       perm.TxnFacts{ID: "t"},
		Tool:      perm.ToolFacts{Name: "file_read", Confinement: "handles", Destination: "none", Grade: "ungraded"},
		Call: perm.CallFacts{
			ID: "c", Args: json.RawMessage(`{"path":"src/a.go","n":7}`), EffectClass: "pure", Declared: true,
			Batch: perm.BatchFacts{Count: 1},
		},
		Access: perm.AccessFacts{Action: perm.Read, Resource: perm.ResourceFacts{
			Kind: "file", Text: "file://workspace/src/a.go", Root: "workspace", Path: "src/a.go",
			Segments: []string{"src", "a.go"}, Name: "a.go", Ext: ".go",
		}},
		Purpose: perm.PurposeRun,
		Time:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func engine(t testing.TB, text string) *rego.Engine {
	t.Helper()
	e, err := load(text)
	require.NoError(t, err)
	return e
}

func decide(t testing.TB, e perm.Engine, r perm.Request) perm.Decision {
	t.Helper()
	d, err := e.Decide(context.Background(), r)
	require.NoError(t, err)
	return d
}

func TestControlAllows(t *testing.T) {
	d := decide(t, engine(t, control), request())
	require.Equal(t, perm.Allow, d.Effect())
	require.Equal(t, []perm.Reason{{Text: "all", At: "p.rego:3", Set: "allow"}}, d.Reasons())
	require.NotEmpty(t, d.Revision())
}

// TestComposition tries every subset of the four deciding sets, for every
// effect class, against the documented order: deny, ask, hold, allow.
func TestComposition(t *testing.T) {
	sets := []string{"deny", "ask", "hold", "allow"}
	for mask := range 1 << len(sets) {
		text := "package remit\nhint contains \"h\"\n"
		var have []string
		for i, set := range sets {
			if mask&(1<<i) != 0 {
				have = append(have, set)
				text += set + " contains \"" + set + "\"\n"
			}
		}
		e := engine(t, text)
		for _, class := range []string{"pure", "reversible", "compensable", "deferrable", "pivot", "", "unheard of"} {
			t.Run(fmt.Sprintf("%v %s", have, class), func(t *testing.T) {
				r := request()
				r.Call.EffectClass = class
				d := decide(t, e, r)
				effect, from := composed(have, class)
				require.Equal(t, effect, d.Effect())
				var got []string
				for _, reason := range d.Reasons() {
					got = append(got, reason.Set)
				}
				require.Equal(t, from, got)
				require.Equal(t, []string{"h"}, d.Details().Hints)
			})
		}
	}
}

// composed returns the effect of a subset of the sets, and the sets whose
// reasons count.
func composed(have []string, class string) (perm.Effect, []string) {
	deny, ask := slices.Contains(have, "deny"), slices.Contains(have, "ask")
	hold, allow := slices.Contains(have, "hold"), slices.Contains(have, "allow")
	badHold := hold && class != "deferrable" && class != "pivot"
	switch {
	case deny && badHold:
		return perm.Deny, []string{"deny", "hold"}
	case deny:
		return perm.Deny, []string{"deny"}
	case badHold:
		return perm.Deny, []string{"hold"}
	case ask && hold:
		return perm.Ask, []string{"ask", "hold"}
	case ask:
		return perm.Ask, []string{"ask"}
	case hold:
		return perm.Hold, []string{"hold"}
	case allow:
		return perm.Allow, []string{"allow"}
	default:
		return perm.Deny, []string{"deny"}
	}
}

func TestNoMatchDenies(t *testing.T) {
	d := decide(t, engine(t, "package remit\nallow contains \"x\" if input.access.action == \"write\""), request())
	require.Equal(t, perm.Deny, d.Effect())
	require.Equal(t, []perm.Reason{{Text: "no rule allows this", Set: "deny"}}, d.Reasons())
}

func TestHoldOfACallThatCannotWait(t *testing.T) {
	d := decide(t, engine(t, control+"hold contains \"later\""), request())
	require.Equal(t, perm.Deny, d.Effect())
	require.Equal(t, "later: only deferrable and pivot calls can be held, this one is pure", d.Reasons()[0].Text)
}

func TestLimitDenies(t *testing.T) {
	e := engine(t, control+`limit contains "two reads a session" if input.session.tools[input.tool.name].run >= 2`)
	d := decide(t, e, request())
	require.Equal(t, perm.Deny, d.Effect())
	require.Equal(t, perm.Reason{Text: "two reads a session", At: "p.rego:4", Set: "limit"}, d.Reasons()[0])
	r := request()
	r.Session.Tools = perm.CountsByTool{}
	require.Equal(t, perm.Allow, decide(t, e, r).Effect())
}

func TestDetails(t *testing.T) {
	e := engine(t, control+`hint contains "b"
hint contains "a"
hint contains "b" if input.call.declared
require contains "verify"
require contains x if x := concat("", ["sand", "box"])
mask contains "file://*/**/.git/**"
label contains "untrusted"
redact contains "/args/token"
ensure contains "never seen outside verify"
hide contains "never seen outside list"
`)
	d := decide(t, e, request())
	require.Equal(t, perm.Allow, d.Effect())
	got := d.Details()
	require.Equal(t, []string{"b", "a"}, got.Hints)
	require.Equal(t, []perm.Reason{
		{Text: "verify", At: "p.rego:7", Set: "require"}, {Text: "sandbox", At: "p.rego:8", Set: "require"},
	}, got.Requires)
	require.Equal(t, []string{"file://*/**/.git/**"}, got.Masks)
	require.Equal(t, []string{"untrusted"}, got.Labels)
	require.Equal(t, []string{"/args/token"}, got.Redact)
	require.Empty(t, got.FailedPostconditions)
	require.Empty(t, got.HideReasons)
	require.Equal(t, e.Revision(), got.Revision)
}

func TestPurposes(t *testing.T) {
	e := engine(t, control+`ensure contains "the program failed" if input.output.exit != 0
ensure contains "a file was deleted" if { some c in input.changes; c.kind == "delete" }
hide contains "not for agents" if input.principal.kind == "agent"
`)
	r := request()
	r.Purpose = perm.PurposeVerify
	r.Output = json.RawMessage(`{"exit":0}`)
	d := decide(t, e, r)
	require.Equal(t, perm.Allow, d.Effect())
	require.Empty(t, d.Details().FailedPostconditions)

	r.Output = json.RawMessage(`{"exit":2}`)
	r.Changes = []perm.ChangeFacts{{Kind: "delete", Resource: perm.ResourceFacts{Kind: "file", Text: "file://workspace/a"}}}
	d = decide(t, e, r)
	require.Equal(t, perm.Deny, d.Effect(), "a broken postcondition is never a success")
	require.Equal(t, []perm.Reason{
		{Text: "the program failed", At: "p.rego:4", Set: "ensure"},
		{Text: "a file was deleted", At: "p.rego:5", Set: "ensure"},
	}, d.Details().FailedPostconditions)

	r = request()
	r.Purpose = perm.PurposeList
	require.Equal(t, []perm.Reason{{Text: "not for agents", At: "p.rego:6", Set: "hide"}}, decide(t, e, r).Details().HideReasons)
}

func TestRequirementsAreKnown(t *testing.T) {
	d := decide(t, engine(t, control+`require contains concat("", ["pra", "yer"])`), request())
	require.Equal(t, perm.Deny, d.Effect())
	require.Contains(t, d.Reasons()[0].Text, `require "prayer" cannot be met`)
	require.Equal(t, "p.rego:4", d.Reasons()[0].At)
	d = decide(t, engine(t, control+`redact contains concat(".", ["args", "token"])`), request())
	require.Equal(t, perm.Deny, d.Effect())
	require.Contains(t, d.Reasons()[0].Text, "JSON pointer")
}

// TestReasonsNameTheirRule covers the steps between a rule and its reason.
func TestReasonsNameTheirRule(t *testing.T) {
	a := `package remit

import input.access as access
import data.names

allow contains reason if {
	some action in ["read", "list"]
	access.action == action
	reason := sprintf("%s is fine", [action])
}

deny contains "same" if helper(access.resource)

deny contains "same" if
	names[_] == "coder"

helper(r) if r.root == "workspace"

ask contains "denied elsewhere" if "same" in deny
`
	b := "package remit\n\ndeny contains \"from b\" if true\nask contains \"x\"\n"
	e, err := rego.New(rego.Options{
		Modules: map[string]string{"b.rego": b, "a.rego": a},
		Data:    map[string]any{"names": []string{"coder"}},
	})
	require.NoError(t, err)
	require.Equal(t, []perm.Reason{
		{Text: "same", At: "a.rego:12", Set: "deny"},
		{Text: "same", At: "a.rego:14", Set: "deny"},
		{Text: "from b", At: "b.rego:3", Set: "deny"},
	}, decide(t, e, request()).Reasons())

	e, err = rego.New(rego.Options{Modules: map[string]string{"a.rego": a}, Data: map[string]any{"names": []string{}}})
	require.NoError(t, err)
	r := request()
	r.Access.Resource.Root = "other"
	require.Equal(t, []perm.Reason{{Text: "read is fine", At: "a.rego:6", Set: "allow"}}, decide(t, e, r).Reasons())
}

func TestHelperSetsAreFine(t *testing.T) {
	e, err := rego.New(rego.Options{Modules: map[string]string{
		"p.rego": "package remit\nimport data.lib\nroots contains \"workspace\"\nallow contains \"in a root\" if input.access.resource.root in roots\nask contains x if some x in lib.ask\n",
		"l.rego": "package lib\nask contains \"x\" if input.call.effect_class == \"pivot\"\n",
	}})
	require.NoError(t, err)
	require.Equal(t, perm.Allow, decide(t, e, request()).Effect())
}

func TestRevision(t *testing.T) {
	base := rego.Options{Modules: map[string]string{"a.rego": control, "b.rego": control}, Data: map[string]any{"x": 1, "y": 2}}
	rev := func(o rego.Options) string {
		e, err := rego.New(o)
		require.NoError(t, err)
		return e.Revision()
	}
	want := rev(base)
	require.True(t, strings.HasPrefix(want, "sha256:"))
	require.Equal(t, want, rev(base))
	with := base
	with.Modules = map[string]string{"a.rego": control, "b.rego": control, "b_test.rego": "package remit\ntest_x if true"}
	require.Equal(t, want, rev(with), "tests decide nothing")
	with.Modules = map[string]string{"a.rego": control, "b.rego": control + " "}
	require.NotEqual(t, want, rev(with))
	with.Modules = map[string]string{"a.rego": control, "c.rego": control}
	require.NotEqual(t, want, rev(with), "reasons name files")
	with = base
	with.Data = map[string]any{"x": 1, "y": 3}
	require.NotEqual(t, want, rev(with))
}

func TestEngineKeepsCopies(t *testing.T) {
	modules := map[string]string{"p.rego": "package remit\nallow contains x if some x in data.words"}
	words := []any{"a"}
	e, err := rego.New(rego.Options{Modules: modules, Data: map[string]any{"words": words}})
	require.NoError(t, err)
	words[0] = "b"
	modules["p.rego"] = ""
	require.Equal(t, "a", decide(t, e, request()).Reasons()[0].Text)
}
