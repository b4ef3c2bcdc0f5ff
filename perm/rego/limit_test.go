package rego_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// TestLimitsAreBudgetsOrRefusals checks that an element of limit that is text
// denies, and one that is an object is a budget.
func TestLimitsAreBudgetsOrRefusals(t *testing.T) {
	e := engine(t, control+`limit contains {"budget": "pay", "max": input.call.args.max, "sum": "spend", "window": "1h", "tools": ["a", "b"]} if input.call.args.max
limit contains {"budget": "calls", "max": 3, "per": "transaction"}
limit contains "stop" if input.call.args.stop`)
	ask := func(args string) (perm.Decision, error) {
		r := request()
		r.Call.Args = json.RawMessage(args)
		return e.Decide(context.Background(), r)
	}
	d, err := ask(`{"max": 12.5}`)
	require.NoError(t, err)
	require.Equal(t, perm.Allow, d.Effect())
	require.Equal(t, []perm.Limit{
		{Budget: "pay", Max: "12.5", Sum: "spend", Window: "1h", Tools: []string{"a", "b"}, At: "p.rego:4"},
		{Budget: "calls", Max: "3", Per: perm.PerTransaction, At: "p.rego:5"},
	}, d.Limits())
	d, err = ask(`{"stop": true}`)
	require.NoError(t, err)
	require.Equal(t, perm.Deny, d.Effect())
	require.Equal(t, []perm.Reason{{Text: "stop", At: "p.rego:6", Set: "limit"}}, d.Reasons())
	for _, bad := range []string{`{"max": "12"}`, `{"max": -1}`, `{"max": true}`} {
		d, err = ask(bad)
		require.ErrorIs(t, err, rego.ErrEvaluation, bad)
		require.NotEqual(t, perm.Allow, d.Effect())
	}
}

// TestToolsOfALimit checks that a limit takes its tools from a set too, because a
// rule compares the name of the tool with a set.
func TestToolsOfALimit(t *testing.T) {
	e := engine(t, control+`writers := {"file_write", "file_edit"}
limit contains {"budget": "writes", "max": 3, "tools": writers}`)
	d, err := e.Decide(context.Background(), request())
	require.NoError(t, err)
	require.Equal(t, []string{"file_edit", "file_write"}, d.Limits()[0].Tools)
	_, err = load(control + `limit contains {"budget": "writes", "max": 3, "tools": {1}}`)
	require.ErrorContains(t, err, `the field "tools" of a limit has the wrong type`)
}

// TestLimitsThatARequestGives checks that parts that depend on the request
// cause no error when the policy loads.
func TestLimitsThatARequestGives(t *testing.T) {
	for _, element := range []string{
		`{"budget": b, "max": n} if { b := input.tool.name; n := input.txn.calls }`,
		`{"budget": "b", "max": n} if some n in [1, 2]`,
		`{"budget": "b", "max": most} if some most in [1, 2]`,
		`{"budget": "b", "max": most} if { some most; most = input.txn.calls }`,
		`{"budget": "b", "max": two}`, `{"budget": "b", "max": later}`,
		`{k: "b", "max": 1} if k := input.tool.name`, `{k: 1, "budget": "b"} if k := input.tool.name`,
		`{"budget": "b", "max": a} if { f := -1; e := f; d := e; c := d; a := c }`,
		`{"budget": "b", "max": m} if [m] = [input.call.args.m]`,
		`l if l := input.call.args.limit`, `l if some l in [{"budget": "b", "max": 1}]`,
	} {
		_, err := load("package remit\nlimit contains " + element + "\nmost := -1\ntwo := -1 if input.call.declared\ntwo := -2 if not input.call.declared\nlater := input.txn.calls")
		require.NoError(t, err, element)
	}
}

// TestNamesInARow checks that a policy with many names that refer to one
// another, in both directions, loads without delay.
func TestNamesInARow(t *testing.T) {
	body := "n0 := input.access.action"
	for i := range 40 {
		body += fmt.Sprintf("\n\tn%d = n%d", i, i+1)
	}
	_, err := load("package remit\ndeny contains \"x\" if {\n\t" + body + "\n\tn40 == \"write\"\n}")
	require.NoError(t, err)
}

func TestLimitsThatCannotBeMeant(t *testing.T) {
	for element, want := range map[string]string{
		`{"budget": "b"}`:                           "max of a limit is a number",
		`{"max": 1}`:                                "a limit names its budget",
		`{"budget": "b", "max": 1, "maxx": 2}`:      `a limit has no field "maxx"`,
		`{"budget": "b", "max": 1, "window": "2h"}`: "window of a limit is one of 1m, 1h, 24h",
		`{"budget": "b", "max": 1, "window": ""}`:   `the field "window" of a limit has the wrong type`,
		`{"budget": "b", "max": 1, "tools": "a"}`:   `the field "tools" of a limit has the wrong type`,
		`{"budget": "b", "max": 1, "tools": [1]}`:   `the field "tools" of a limit has the wrong type`,
		`{"budget": "b", "max": 1, "sum": 1}`:       `the field "sum" of a limit has the wrong type`,
		`7`:                                         "an element of limit is a text",

		`{"budget": b, "max": -1} if b := input.tool.name`:                                                                  "max of a limit is a number that is not negative",
		`{"budget": b, "max": n} if { b := input.tool.name; n := -1 }`:                                                      "max of a limit is a number that is not negative",
		`{"budget": b, "max": n} if { b := input.tool.name; -1 = n }`:                                                       "max of a limit is a number that is not negative",
		`{"budget": b, "max": less} if { b := input.tool.name }`:                                                            "max of a limit is a number that is not negative",
		`l if { l := {"budget": input.tool.name, "max": 3, "per": "year"} }`:                                                "per of a limit is one of session",
		`{"budget": "b", "max": input.txn.calls, "prr": "session"}`:                                                         `a limit has no field "prr"`,
		`{"budget": "b", "max": input.txn.calls, "prr": input.tool.name}`:                                                   `a limit has no field "prr"`,
		`{"budget": input.tool.name}`:                                                                                       "max of a limit is a number",
		`{"budget": b, "max": "3"} if some b in input.principal.roles`:                                                      `the field "max" of a limit has the wrong type`,
		`{k: "b", "max": -1} if k := input.tool.name`:                                                                       "max of a limit is a number",
		`{k: "b", "max": 1, "window": "2h"} if k := "budget"`:                                                               "window of a limit is one of 1m",
		`{"budget": "b", "max": 1, "sum": 1, "tools": input.principal.roles}`:                                               `the field "sum" of a limit has the wrong type`,
		`{"budget": "b", "max": 1, "per": input.tool.name, "window": 5, "sum": input.tool.name} if not input.call.declared`: `the field "window" of a limit has the wrong type`,
	} {
		_, err := load("package remit\nlimit contains " + element + "\nless := -1")
		require.ErrorContains(t, err, want, element)
		require.ErrorContains(t, err, "p.rego:2")
	}
}
