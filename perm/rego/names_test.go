package rego_test

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// TestUndefinedNames checks that a policy does not load if a rule reads
// undefined data. Such a rule never fires.
func TestUndefinedNames(t *testing.T) {
	data := map[string]any{"limits": map[string]any{"max": 3, "hosts": []any{"a", "b"}, "none": nil}}
	tests := []struct {
		name, text, at, says, fix string
	}{
		{"data", `deny contains "x" if data.limits.frozen`, "p.rego:4:22", "no rule and no data file defines data.limits.frozen", "there is hosts, max"},
		{"near", `deny contains "x" if data.limits.maxx > 2`, "p.rego:4:22", "data.limits.maxx", "did you mean max?"},
		{"under not", `deny contains "x" if not data.limit.max`, "p.rego:4:26", "defines data.limit", "did you mean limits?"},
		{"below a scalar", `deny contains "x" if data.limits.max.hour`, "p.rego:4:22", "data.limits.max.hour", "data.json"},
		{"below null", `deny contains "x" if data.limits.none.hour`, "p.rego:4:22", "data.limits.none.hour", "data.json"},
		{"no such index", `deny contains "x" if data.limits.hosts[2] == "c"`, "p.rego:4:22", "data.limits.hosts[2]", "data.json"},
		{"a name of a list", `deny contains "x" if data.limits.hosts.first == "c"`, "p.rego:4:22", "data.limits.hosts.first", "data.json"},
		{"in a comprehension", `deny contains "x" if count({h | some h in data.limits.host}) > 1`, "p.rego:4:33", "data.limits.host", "did you mean hosts?"},
		{"in every", "deny contains \"x\" if {\n\tevery h in data.limits.host { h != \"a\" }\n}", "p.rego:5:13", "data.limits.host", "did you mean hosts?"},
		{"as an operand", `deny contains "x" if count(data.limits.host) > 1`, "p.rego:4:28", "data.limits.host", "did you mean hosts?"},
		{"as a key", `deny contains "x" if input.call.args[data.limits.key]`, "p.rego:4:38", "data.limits.key", "there is hosts, max"},
		{"as a reason", `deny contains data.limits.why if input.call.declared`, "p.rego:4:15", "data.limits.why", "there is"},
		{"as a value", "x := data.limits.why\ndeny contains \"x\" if x", "p.rego:4:6", "data.limits.why", "there is"},
		{"behind else", "x := 1 if input.call.declared\nelse := data.limits.why\ndeny contains \"x\" if x == 2", "p.rego:5:9", "data.limits.why", "there is"},
		{"in the name of a rule", "x[data.limits.why] := 1 if input.call.declared\ndeny contains \"x\" if x.a", "p.rego:4:3", "data.limits.why", "there is"},
		{"put in the place of input", "x if input.call.declared\ndeny contains \"x\" if x with input as data.limits.why", "p.rego:5:38", "data.limits.why", "there is"},
		{"beside what is put there", "x if data.limits.max\ndeny contains \"x\" if { x with data.limits.max as 1; data.limit.max }", "p.rego:5:53", "data.limit", "limits"},
		{"set", `hint contains "x" if "b" in data.remit.denny`, "p.rego:4:29", "data.remit.denny", "there is allow, hint"},
		{"library", "x if data.remit.lib.chnges\ndeny contains \"x\" if x", "p.rego:4:6", "data.remit.lib.chnges", "did you mean changes?"},
		{"package", "x if data.remit.libb.changes\ndeny contains \"x\" if x", "p.rego:4:6", "data.remit.libb", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": control + tt.text}, Data: data, Timeout: longTimeout})
			var bad *rego.LoadError
			require.ErrorAs(t, err, &bad)
			require.Len(t, bad.Problems, 1, "%v", err)
			require.Equal(t, tt.at, bad.Problems[0].At)
			require.Contains(t, bad.Problems[0].Text, tt.says)
			require.Contains(t, bad.Problems[0].Fix, tt.fix)
		})
	}
}

// TestUndefinedImport checks that an undefined import is reported once, at the
// import.
func TestUndefinedImport(t *testing.T) {
	_, err := load("package remit\n\nimport data.remit.libb\nimport data.nothing as n\n\nallow contains \"x\" if {\n\tlibb.changes\n\tlibb.looks\n\tn.a\n}\n")
	var bad *rego.LoadError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, []rego.Problem{
		{At: "p.rego:3:8", Text: "no rule and no data file defines data.remit.libb", Fix: "there is allow; or write the rule, or put the value into a file called data.json in a folder of the policy"},
		{At: "p.rego:4:8", Text: "no rule and no data file defines data.nothing", Fix: "there is remit; or write the rule, or put the value into a file called data.json in a folder of the policy"},
	}, bad.Problems)
}

// TestDefinedNames checks that names that exist, or may exist, are no errors.
func TestDefinedNames(t *testing.T) {
	data := map[string]any{"limits": map[string]any{"max": 3, "none": nil, "off": false, "hosts": []any{"a"}, "rows": map[string]any{"1": 2}}}
	for name, text := range map[string]string{
		"null and false":   `deny contains "x" if { data.limits.none; data.limits.off }`,
		"index":            `deny contains "x" if data.limits.hosts[0] == "b"`,
		"rows":             `deny contains "x" if { some k; data.limits.rows[k] == input.call.args.n }`,
		"a computed key":   `deny contains "x" if data.limits[input.tool.name].per_hour > 1`,
		"whole":            `deny contains "x" if count(data.limits) > 100`,
		"another package":  `deny contains "x" if data.team.blocked[input.tool.name]`,
		"inside a rule":    `deny contains "x" if data.team.table.a.b == 3`,
		"a package":        `deny contains "x" if count(data.team) > 100`,
		"put in its place": "deny contains \"x\" if data.limits.max > 5 with data.limits.max as 1",
		"made by with":     "deny contains \"x\" if data.switches.off with data.switches as {\"off\": false}",
		"made below":       "deny contains \"x\" if data.switches.off with data.switches.off as false",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rego.New(rego.Options{Data: data, Timeout: longTimeout, Modules: map[string]string{
				"p.rego": control + text,
				"t.rego": "package team\n\nblocked contains \"x\" if input.call.declared\n\ntable := {k: v | some k, v in {\"a\": {\"b\": 1}}}\n",
			}})
			require.NoError(t, err)
		})
	}
}

// TestLibWithoutSource checks that rules and tests can use data.remit.lib without a
// source.
func TestLibWithoutSource(t *testing.T) {
	policy := "package remit\n\nimport data.remit.lib\n\nallow contains \"x\" if lib.changes\n"
	e, err := load(policy)
	require.NoError(t, err)
	r := request()
	r.Access.Action = perm.Write
	require.Equal(t, perm.Allow, decide(t, e, r).Effect())
	require.Empty(t, e.UncheckedRefs(), "notes are about the author's files")
	for _, n := range e.SlowRules() {
		require.Equal(t, "p.rego:5", n.At)
	}
	explicit, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": policy}, Sources: []rego.Source{{FS: policies.Lib()}}, Timeout: longTimeout})
	require.NoError(t, err)
	require.Equal(t, explicit.Revision(), e.Revision(), "the library is part of what decides")

	own, err := rego.New(rego.Options{Timeout: longTimeout, Modules: map[string]string{"p.rego": policy, "lib.rego": "package remit.lib\n\nchanges if false\n"}})
	require.NoError(t, err)
	require.Equal(t, perm.Deny, decide(t, own, r).Effect(), "a policy's own package of that name counts")
	without, err := load(control)
	require.NoError(t, err)
	require.NotEqual(t, without.Revision(), e.Revision())
}

// TestLibInTests checks that a library used only by tests is not part of the
// policy.
func TestLibInTests(t *testing.T) {
	test := "package remit_test\n\nimport data.remit.lib\n\ntest_lib if lib.looks with input as {\"access\": {\"action\": \"read\"}}\n"
	e, err := rego.New(rego.Options{Timeout: longTimeout, Modules: map[string]string{"p.rego": control, "p_test.rego": test}})
	require.NoError(t, err)
	alone, err := load(control)
	require.NoError(t, err)
	require.Equal(t, alone.Revision(), e.Revision())
	report, err := e.Test(context.Background())
	require.NoError(t, err)
	require.Len(t, report.Results, 1)
	require.Empty(t, report.Failed())
	require.Len(t, report.Coverage, 1, "coverage is of the author's files")
}

// TestUndefinedNamesInTests checks tests of undefined names, which otherwise
// hold.
func TestUndefinedNamesInTests(t *testing.T) {
	e, err := rego.New(rego.Options{Timeout: longTimeout, Modules: map[string]string{
		"p.rego":      control,
		"p_test.rego": "package remit_test\n\ntest_none if not \"x\" in data.remit.denny with input as {}\n\ntest_made if data.a.b with data.a as {\"b\": 1}\n",
	}})
	require.NoError(t, err)
	_, err = e.Test(context.Background())
	var bad *rego.LoadError
	require.True(t, errors.As(err, &bad), "%v", err)
	require.Equal(t, "p_test.rego:3:25", bad.Problems[0].At)
	require.Contains(t, bad.Problems[0].Text, "data.remit.denny")
}

// TestPackBesideRules checks that coverage omits the files of a source with
// NoTests.
func TestPackBesideRules(t *testing.T) {
	e, err := rego.New(rego.Options{Timeout: longTimeout, Sources: []rego.Source{
		{FS: policies.Flow(), Prefix: policies.Prefix, NoTests: true},
		{FS: fstest.MapFS{"p.rego": {Data: []byte(control)}, "p_test.rego": {Data: []byte("package remit_test\n\ntest_all if \"all\" in data.remit.allow\n")}}},
	}})
	require.NoError(t, err)
	require.Empty(t, e.UncheckedRefs())
	report, err := e.Test(context.Background())
	require.NoError(t, err)
	require.Len(t, report.Results, 1)
	require.Equal(t, "p.rego", report.Coverage[0].File)
	require.Len(t, report.Coverage, 1)
	require.Empty(t, report.Uncovered)
}
