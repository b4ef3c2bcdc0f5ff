package rego_test

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

func TestRedacts(t *testing.T) {
	yes := engine(t, control+`redact contains "/args/a~1b/~0" if true`)
	require.True(t, yes.Redacts())
	require.False(t, engine(t, control).Redacts())
	require.False(t, (*rego.Engine)(nil).Redacts())
	require.True(t, rego.NewSwappableEngine(yes).Redacts())
	r, err := rego.NewReloader(context.Background(), rego.Options{Modules: map[string]string{"p.rego": control}})
	require.NoError(t, err)
	require.False(t, r.Redacts())
	for _, bad := range []string{"/args/a~2", "/args/~", "/call/args", "args/x", "/", ""} {
		_, err := load(control + `redact contains "` + bad + `" if true`)
		require.ErrorContains(t, err, "JSON pointer into /args or /output", bad)
	}
}

func TestDataThatCannotBeRead(t *testing.T) {
	tree := fstest.MapFS{"p.rego": {Data: []byte(control)}, "x.json/inside": {Data: nil}}
	_, err := rego.Load(rego.Source{FS: tree, Globs: []string{"*"}})
	require.ErrorContains(t, err, "x.json: the file cannot be read")
}

// TestNothingIsAsked checks that a policy with rules for other purposes denies
// a call.
func TestNothingIsAsked(t *testing.T) {
	d := decide(t, engine(t, "package remit\nhide contains \"x\" if true"), request())
	require.Equal(t, perm.Deny, d.Effect())
	require.Equal(t, "no rule allows this", d.Reasons()[0].Text)
}

func TestMemberOfWhatIsNoJSON(t *testing.T) {
	for _, text := range []string{`{"a`, `{"a":`, `{"a":1`, `{"a" 1}`} {
		_, err := rego.Member(text, []string{"a"})
		require.Error(t, err, text)
	}
}

// TestAWholePackageIsUsed checks that a rule that reads a whole package uses
// every rule of it.
func TestAWholePackageIsUsed(t *testing.T) {
	_, err := rego.New(rego.Options{Modules: map[string]string{
		"p.rego": "package remit\nimport data.words\nallow contains \"x\" if count(words) > 0",
		"w.rego": "package words\nlist contains \"a\"",
	}})
	require.NoError(t, err)
}

func TestAnEveryThatDoesNotHold(t *testing.T) {
	report, err := withTests(t, `package remit_test

import data.remit

test_every if {
	every action in ["read", "write"] {
		remit.allow with input as {"access": {"action": action}}
		action == "read"
	}
}
`).Test(context.Background())
	require.NoError(t, err)
	require.Equal(t, "p_test.rego:8", report.Results[0].Stopped)
	require.Contains(t, report.Results[0].Saw, `"write"`)
}

// TestTablesThatStay checks forms of rules over tables that stay unchanged. A
// condition before them can fail, or another construct decides.
func TestTablesThatStay(t *testing.T) {
	data := map[string]any{
		"rows": []any{map[string]any{"name": "a", "pre": "s"}}, "names": []any{"a", "s"}, "odd": []any{"a", 1},
		"nested": map[string]any{"1": []any{"a"}},
	}
	for rule, becomes := range map[string]int{
		`deny contains "x" if { startswith(input.access.resource.path, "s"); some row in data.rows; input.tool.name == row.name }`:                         1,
		`deny contains "x" if { some n in data.names; startswith(input.access.resource.path, n) }`:                                                         2,
		`deny contains "x" if { some n in data.odd; startswith(input.access.resource.path, n) }`:                                                           1,
		`deny contains "x" if { some row in data.rows; startswith(input.access.resource.path, row.pre) }`:                                                  1,
		`deny contains "x" if { startswith(input.access.resource.path, data.rows[_].pre) }`:                                                                1,
		`deny contains "x" if { n := input.tool.version; some m in data.names; startswith(n, m); glob.match("a*", null, n) }`:                              2,
		`deny contains "x" if { some m in data.names; glob.match(m, [input.tool.version], input.tool.name) }`:                                              1,
		`deny contains "x" if { x := [1 | input.tool.name == "a" with input.tool.name as "b"]; some m in data.names; input.tool.name == m; count(x) > 0 }`: 1,
		`deny contains "x" if { input.tool.name in data.odd }`:                                                                                             1,
		`deny contains "x" if { input.tool.name in {"a", "b"} }`:                                                                                           1,
		`deny contains "x" if { some x in data.nested["1"]; input.tool.name == x }`:                                                                        1,
		`deny contains "x" if { data.nested[input.tool.version][_] == input.tool.name }`:                                                                   1,
	} {
		e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": control + rule}, Data: data, Timeout: longTimeout})
		require.NoError(t, err, rule)
		_, evaluated := rego.Rules(e, "deny")
		require.Equal(t, becomes, evaluated, rule)
	}
	e, err := rego.New(rego.Options{Modules: map[string]string{
		"p.rego": control + "deny contains \"x\" if what == input.tool.name\nwhat := row.name if { some row in data.rows; row.pre == input.tool.version }",
	}, Data: data, Timeout: longTimeout})
	require.NoError(t, err)
	r := request()
	r.Tool.Name, r.Tool.Version = "a", "s"
	require.Equal(t, perm.Deny, decide(t, e, r).Effect())
}
