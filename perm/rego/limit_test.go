package rego_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// TestLimitsAreBudgetsOrRefusals: an element that is a text refuses, one that is
// an object is a budget for whoever counts.
func TestLimitsAreBudgetsOrRefusals(t *testing.T) {
	e := engine(t, control+`limit contains {"budget": "pay", "max": input.call.args.max, "sum": "spend", "window": "1h", "tools": ["a", "b"]} if input.call.args.max
limit contains {"budget": "calls", "max": 3}
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
		{Budget: "calls", Max: "3", At: "p.rego:5"},
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
	} {
		_, err := load("package remit\nlimit contains " + element)
		require.ErrorContains(t, err, want, element)
		require.ErrorContains(t, err, "p.rego:2")
	}
}
