package rego_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// commitRequest returns a request about a commit: a file and a mail.
func commitRequest() perm.Request {
	r := request()
	r.Tool, r.Call, r.Access, r.Purpose = perm.ToolFacts{}, perm.CallFacts{}, perm.AccessFacts{}, perm.PurposeCommit
	r.Session.Labels = []string{"untrusted"}
	r.Txn.Effects = []perm.EffectFacts{
		{Kind: "call", Resource: perm.ResourceFacts{Kind: "tool", Text: "tool://mail", Name: "mail"}, Class: "pivot", Coverage: "declared", Tool: "mail", Call: "c_2"},
		{
			Kind: "write", Class: "reversible", Coverage: "confined", Tool: "file_write", Call: "c_1",
			Resource: perm.ResourceFacts{Kind: "file", Text: "file://workspace/a.go", Root: "workspace", Path: "a.go", Segments: []string{"a.go"}, Name: "a.go", Ext: ".go"},
		},
	}
	r.Txn.Totals = &perm.EffectTotals{Effects: 2, Reversible: 1, Pivot: 1}
	return r
}

// TestCommitHasItsOwnSets checks that rules about calls never decide a commit,
// and that rules about commits never decide anything else.
func TestCommitHasItsOwnSets(t *testing.T) {
	purposes := []perm.Purpose{perm.PurposeRun, perm.PurposeApply, perm.PurposeVerify, perm.PurposeRevert, perm.PurposeMerge, perm.PurposeList}
	var calls strings.Builder
	calls.WriteString("package remit\n")
	for _, set := range rego.SetNames() {
		if !strings.HasSuffix(set, "_commit") {
			fmt.Fprintf(&calls, "\n%s contains %q\n", set, element(set))
		}
	}
	others := engine(t, calls.String())
	require.False(t, others.DecidesCommits())
	d := decide(t, others, commitRequest())
	require.Equal(t, perm.Allow, d.Effect())
	all := d.Details()
	require.Empty(t, slices.Concat(all.Hints, all.Labels, all.Redact, all.Masks))
	require.Empty(t, slices.Concat(all.Requires, all.FailedPostconditions, all.HideReasons))
	require.Empty(t, all.Limits)

	for set, want := range map[string]perm.Effect{"ask_commit": perm.Ask, "deny_commit": perm.Deny} {
		gate := engine(t, "package remit\n\nallow contains \"all\"\n\n"+set+" contains \"look\"\n")
		require.True(t, gate.DecidesCommits())
		d := decide(t, gate, commitRequest())
		require.Equal(t, want, d.Effect())
		require.Equal(t, []perm.Reason{{Text: "look", At: "p.rego:5", Set: set}}, d.Reasons())
		for _, purpose := range purposes {
			r := request()
			r.Purpose = purpose
			require.Equal(t, perm.Allow, decide(t, gate, r).Effect(), purpose)
		}
	}
	both := engine(t, "package remit\n\nask_commit contains \"look\"\n\ndeny_commit contains \"no\"\n")
	require.Equal(t, perm.Deny, decide(t, both, commitRequest()).Effect())
	require.False(t, (*rego.Engine)(nil).DecidesCommits())
	require.True(t, rego.NewSwappableEngine(both).DecidesCommits())
}

// TestCommitRules checks what rules read about a commit.
func TestCommitRules(t *testing.T) {
	e := engine(t, `package remit

ask_commit contains sprintf("%s of %s by %s", [e.kind, e.resource.text, e.tool]) if {
	input.purpose == "commit"
	"untrusted" in input.session.labels
	some e in input.txn.effects
	e.class == "pivot"
}

ask_commit contains "too much to look through" if input.txn.effects_cut

deny_commit contains "nobody knows what happened" if input.txn.totals.unknown > 0
`)
	d := decide(t, e, commitRequest())
	require.Equal(t, perm.Ask, d.Effect())
	require.Equal(t, "call of tool://mail by mail", d.Reasons()[0].Text)
	plain := commitRequest()
	plain.Session.Labels = nil
	require.Equal(t, perm.Allow, decide(t, e, plain).Effect())
	plain.Txn.EffectsCut = true
	require.Equal(t, "too much to look through", decide(t, e, plain).Reasons()[0].Text)
	plain.Txn.Totals.Unknown = 1
	require.Equal(t, perm.Deny, decide(t, e, plain).Effect())

	x, err := e.Explain(t.Context(), plain)
	require.NoError(t, err)
	require.Equal(t, "deny", x.Decision.Effect)
	require.Len(t, x.Rules, 3)

	bad := commitRequest()
	bad.Txn.Effects[0].Tool = "\xff"
	_, err = e.Decide(t.Context(), bad)
	require.ErrorIs(t, err, rego.ErrInput)
}

// TestCommitRulesThatNeverFire are refused when the policy is loaded.
func TestCommitRulesThatNeverFire(t *testing.T) {
	for rule, want := range map[string]string{
		`ask contains "x" if input.purpose == "commit"`:                                  `input.purpose is never "commit" in a rule of ask`,
		`deny contains "x" if input.purpose in {"run", "commit"}`:                        `input.purpose is never "commit" in a rule of deny`,
		`ask_commit contains "x" if input.purpose == "comit"`:                            `input.purpose can never be "comit"`,
		`allow contains "x" if count(input.txn.effects) == 0`:                            "input.txn.effects exists only at a commit",
		`deny contains "x" if { some e in input.txn.effects; e.class == "pivot" }`:       "input.txn.effects exists only at a commit",
		`hold contains "x" if input.txn.totals.held > 0`:                                 "input.txn.totals exists only at a commit",
		`ask_commit contains "x" if input.call.effect_class == "pivot"`:                  "a commit has no input.call",
		`deny_commit contains "x" if input.access.action == "write"`:                     "a commit has no input.access",
		`deny_commit contains "x" if input.tool.name == "x"`:                             "a commit has no input.tool",
		`ask_commit contains "x" if { some e in input.txn.effects; e.kind == "change" }`: `e.kind can never be "change"`,
		`ask_commits contains "x" if true`:                                               "no set has the name ask_commits",
		`ask_commit contains {"reason": "x"} if true`:                                    "an element of ask_commit is a text",
	} {
		_, err := load("package remit\n\nallow contains \"all\"\n\n" + rule + "\n")
		require.ErrorContains(t, err, want, rule)
	}
}
