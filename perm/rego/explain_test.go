package rego_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

func explain(t *testing.T, text string, r perm.Request) rego.Explanation {
	t.Helper()
	x, err := engine(t, text).Explain(context.Background(), r)
	require.NoError(t, err)
	return x
}

func TestExplain(t *testing.T) {
	x := explain(t, `package remit

allow contains "reads" if input.access.action == "read"

allow contains "writes" if {
	input.access.action == "write"
}

deny contains "late" if {
	input.call.declared
	input.call.args.n > 3
	count(input.call.args) > 5
	hot
}

ask contains sprintf("%s asks", [role]) if some role in input.principal.roles

hot if input.tool.grade == "read_only"

allow contains "absent" if input.call.args.no

hide contains "never seen outside list"
`, request())
	require.Equal(t, "ask", x.Decision.Effect)
	require.Equal(t, []perm.Reason{{Text: "dev asks", At: "p.rego:16", Set: "ask"}}, x.Decision.Reasons)
	require.NotEmpty(t, x.Decision.Revision)
	require.Equal(t, []rego.RuleTrace{
		{
			Set: "deny", At: "p.rego:9", Outcome: rego.RuleFailed, Stopped: "p.rego:12",
			Inputs: []rego.InputRead{
				{Path: "input.call.args", Value: json.RawMessage(`{"n":7,"path":"src/a.go"}`)},
				{Path: "input.call.args.n", Value: json.RawMessage("7")},
				{Path: "input.call.declared", Value: json.RawMessage("true")},
				{Path: "input.tool.grade", Value: json.RawMessage(`"ungraded"`)},
			},
		},
		{
			Set: "ask", At: "p.rego:16", Outcome: rego.RuleMatched, Texts: []string{"dev asks"}, Decided: true,
			Inputs: []rego.InputRead{{Path: "input.principal.roles", Value: json.RawMessage(`["dev"]`)}},
		},
		{
			Set: "allow", At: "p.rego:3", Outcome: rego.RuleMatched, Texts: []string{"reads"},
			Inputs: []rego.InputRead{{Path: "input.access.action", Value: json.RawMessage(`"read"`)}},
		},
		{
			Set: "allow", At: "p.rego:5", Outcome: rego.RuleFailed, Stopped: "p.rego:6",
			Inputs: []rego.InputRead{{Path: "input.access.action", Value: json.RawMessage(`"read"`)}},
		},
		{Set: "allow", At: "p.rego:20", Outcome: rego.RuleFailed, Stopped: "p.rego:20", Inputs: []rego.InputRead{{Path: "input.call.args.no"}}},
	}, x.Rules)
}

func TestExplainFailures(t *testing.T) {
	e := engine(t, failing()["built-in in deny"])
	x, err := e.Explain(context.Background(), request())
	require.ErrorIs(t, err, rego.ErrEvaluation)
	require.Equal(t, "deny", x.Decision.Effect)
	require.Equal(t, err.Error(), x.Decision.Reasons[0].Text)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = e.Explain(gone, request())
	require.ErrorIs(t, err, context.Canceled)
	r := request()
	r.Tool.Name = "\xff"
	_, err = e.Explain(context.Background(), r)
	require.ErrorIs(t, err, rego.ErrInput)
	x, err = (*rego.Engine)(nil).Explain(context.Background(), request())
	require.NoError(t, err)
	require.Equal(t, "deny", x.Decision.Effect)
}

// TestExplainDecidesAlike compares explanations with decisions. The outcome is
// the same, a rule that matched gave each reason, and each rule appears once.
func TestExplainDecidesAlike(t *testing.T) {
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		e := randomEngine(t, randomPolicy(rnd, conditions()))
		for _, r := range randomRequests(rnd, 15) {
			d, wantErr := e.Decide(context.Background(), r)
			x, err := e.Explain(context.Background(), r)
			require.Equal(t, wantErr, err)
			require.Equal(t, d.Record(), x.Decision)
			if err != nil {
				continue
			}
			gave := map[perm.Reason]bool{}
			for _, c := range x.Rules {
				require.Equal(t, c.Outcome == rego.RuleMatched, len(c.Texts) > 0)
				for _, text := range c.Texts {
					gave[perm.Reason{Text: text, At: c.At, Set: c.Set}] = true
				}
			}
			for _, reason := range d.Reasons() {
				if reason.At != "" && reason.Set != "hold" {
					require.True(t, gave[reason], "%v", reason)
				}
			}
		}
	}
}
