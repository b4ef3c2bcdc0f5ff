package perm_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

func TestLimits(t *testing.T) {
	tally := func(run, failed, flying int, sum string) perm.Counts {
		return perm.Counts{Run: run, Failed: failed, InFlight: flying, Denied: 100, Sums: map[string]json.Number{"spend": json.Number(sum)}}
	}
	facts := perm.SessionFacts{Tools: perm.NewCountsByTool(map[string]perm.ToolCounts{
		"pay":    {Counts: tally(5, 1, 1, "80.10"), Windows: map[string]perm.Counts{"1h": tally(1, 0, 0, "10")}},
		"refund": {Counts: tally(1, 0, 0, "9.9")},
	})}
	for name, test := range map[string]struct {
		limit perm.Limit
		adds  string
		want  string
	}{
		"calls that fit":      {perm.Limit{Budget: "b", Max: "8"}, "0", ""},
		"calls that do not":   {perm.Limit{Budget: "b", Max: "7"}, "0", `the budget "b" of 7 calls a session has 0 left, less than this call needs`},
		"calls of several":    {perm.Limit{Budget: "b", Max: "8", Tools: []string{"refund", "pay", "refund"}}, "0", `the budget "b" of 8 calls a session has 0 left`},
		"a sum that fits":     {perm.Limit{Budget: "b", Max: "100", Sum: "spend", Tools: []string{"refund"}}, "10", ""},
		"a sum that does not": {perm.Limit{Budget: "b", Max: "100", Sum: "spend", Tools: []string{"refund"}}, "10.0001", `the budget "b" of 100 of spend a session has 10 left`},
		"a window":            {perm.Limit{Budget: "b", Max: "100", Sum: "spend", Window: "1h"}, "90.5", `the budget "b" of 100 of spend in 1h has 90 left`},
		"a window that fits":  {perm.Limit{Budget: "b", Max: "100", Sum: "spend", Window: "1h"}, "90", ""},
		"long used up":        {perm.Limit{Budget: "b", Max: "1", Sum: "spend"}, "0", `the budget "b" of 1 of spend a session has 0 left`},
		"no such sum":         {perm.Limit{Budget: "b", Max: "1", Sum: "weight"}, "0", `the budget "b" is about the sum "weight", which the tool pay does not count`},
		"no budget":           {perm.Limit{Max: "1"}, "0", "a limit names its budget"},
		"no max":              {perm.Limit{Budget: "b"}, "0", "max of a limit is a number that is not negative"},
		"a negative max":      {perm.Limit{Budget: "b", Max: "-1"}, "0", "max of a limit is a number that is not negative"},
		"of a principal":      {perm.Limit{Budget: "b", Max: "7", Per: perm.PerPrincipal}, "0", `the budget "b" of 7 calls a principal has 0 left`},
		"a window of one":     {perm.Limit{Budget: "b", Max: "1", Per: perm.PerPrincipal, Window: "1h"}, "0", `the budget "b" of 1 calls in 1h of the principal has 0 left`},
		"another scope":       {perm.Limit{Budget: "b", Max: "1", Per: "person"}, "0", "per of a limit is one of session, transaction, principal, or left out for the session"},
		"another window":      {perm.Limit{Budget: "b", Max: "1", Window: "2h"}, "0", "window of a limit is one of 1m, 1h, 24h, or left out for the whole session"},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.limit.Over(facts, "pay", map[string]json.Number{"spend": json.Number(test.adds)})
			if test.want == "" {
				require.Empty(t, got)
				return
			}
			require.Contains(t, got, test.want)
		})
	}
}

func TestLimitOfASumThatIsNoNumber(t *testing.T) {
	l := perm.Limit{Budget: "money", Max: "10", Sum: "amount"}
	require.Equal(t, `the budget "money" cannot be held: the sum "amount" is no number`,
		l.Over(perm.SessionFacts{}, "pay", map[string]json.Number{"amount": "x"}))
}

func TestDecisionLimits(t *testing.T) {
	d := perm.NewDecision(perm.Allow, perm.Details{Limits: []perm.Limit{{Budget: "b", Max: "1"}}})
	d.Limits()[0].Budget = "changed"
	require.Equal(t, "b", d.Limits()[0].Budget)
}
