package rego_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

const tested = `package remit

allow contains "reads" if input.access.action == "read"

deny contains "git" if ".git" in input.access.resource.segments
`

func withTests(t *testing.T, tests string) *rego.Engine {
	t.Helper()
	e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": tested, "p_test.rego": tests}})
	require.NoError(t, err)
	return e
}

func TestPolicyTests(t *testing.T) {
	report, err := withTests(t, `package remit_test

import data.remit

test_read if remit.allow["reads"] with input as {"access": {"action": "read"}}

test_wrong if {
	print("looking")
	remit.allow["reads"] with input as {"access": {"action": "write"}}
}

test_fails if to_number("x") == 1

todo_test_later if false
`).Test(context.Background())
	require.NoError(t, err)
	require.Len(t, report.Results, 4)
	byName := map[string]rego.TestResult{}
	for _, r := range report.Results {
		byName[r.Name] = r
	}
	require.Equal(t, rego.TestResult{Name: "test_read", At: "p_test.rego:5", Status: "pass"}, byName["test_read"])
	require.Equal(t, rego.TestResult{
		Name: "test_wrong", At: "p_test.rego:7", Status: "fail", Output: "looking\n", Stopped: "p_test.rego:9",
		Saw: "\tremit.allow[\"reads\"] with input as {\"access\": {\"action\": \"write\"}}\n\t|\n\tundefined",
	}, byName["test_wrong"])
	require.Equal(t, "error", byName["test_fails"].Status)
	require.Contains(t, byName["test_fails"].Text, "to_number")
	require.Equal(t, "skip", byName["todo_test_later"].Status)
	require.Len(t, report.Failed(), 2)
	require.Equal(t, []string{"p.rego:5"}, report.Uncovered)
	require.Equal(t, []rego.FileCoverage{{File: "p.rego", Rules: 2, RulesReached: 1, Lines: 2, LinesReached: 1, Percent: 50}}, report.Coverage)
}

func TestPolicyTestsThatDoNotCompile(t *testing.T) {
	_, err := withTests(t, "package remit_test\nimport data.remit\ntest_x if remit.alow[\"x\"]\ntest_y if nothing").Test(context.Background())
	var bad *rego.LoadError
	require.ErrorAs(t, err, &bad)
	require.Contains(t, bad.Error(), "p_test.rego:4")
}

func TestPolicyTestsStop(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := withTests(t, "package remit_test\ntest_x if true").Test(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestTestsNeverDecide(t *testing.T) {
	e := withTests(t, "package remit\nimport rego.v1\nhelper := 1\ntest_x if helper == 1")
	require.Equal(t, "reads", decide(t, e, request()).Reasons()[0].Text)
	_, err := rego.New(rego.Options{Modules: map[string]string{
		"p.rego": tested, "p_test.rego": "package remit\ndeny contains \"never asked\"",
	}})
	require.ErrorContains(t, err, "p_test.rego:2:1: this rule adds to deny but stands in a file of tests")
}

func TestNoTestsIsNoFailure(t *testing.T) {
	report, err := engine(t, control).Test(context.Background())
	require.NoError(t, err)
	require.Empty(t, report.Failed())
	require.Equal(t, []string{"p.rego:3"}, report.Uncovered)
}

// TestMembersInPolicyTests: a test sees the deny that a decision sees, where a literal collection has a variable.
func TestMembersInPolicyTests(t *testing.T) {
	module := "package remit\n\nallow contains \"all\"\n\ndeny contains \"owner\" if input.principal.id in {input.call.args.owner, \"root\"}\n\n" +
		"self(x) if x in [input.call.args.owner, \"root\"]\n\ndeny contains \"self\" if self(input.principal.id)\n"
	e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": module, "p_test.rego": `package remit_test

import data.remit

owner := {"principal": {"id": "coder"}, "call": {"args": {"owner": "coder"}}}

test_owner if remit.deny["owner"] with input as owner

test_self if remit.deny["self"] with input as owner

test_root if remit.deny == {"owner", "self"} with input as {"principal": {"id": "root"}, "call": {"args": {"owner": "coder"}}}

test_other if count(remit.deny) == 0 with input as {"principal": {"id": "other"}, "call": {"args": {"owner": "coder"}}}
`}})
	require.NoError(t, err)
	report, err := e.Test(context.Background())
	require.NoError(t, err)
	require.Len(t, report.Results, 4)
	require.Empty(t, report.Failed())
	r := request()
	r.Principal.ID, r.Call.Args = "coder", json.RawMessage(`{"owner":"coder"}`)
	for _, decide := range []func(context.Context, *rego.Engine, perm.Request) (perm.Decision, error){
		func(ctx context.Context, e *rego.Engine, r perm.Request) (perm.Decision, error) {
			return e.Decide(ctx, r)
		}, rego.DecideWhole, rego.DecidePlain,
	} {
		d, err := decide(context.Background(), e, r)
		require.NoError(t, err)
		require.Equal(t, perm.Deny, d.Effect())
		require.Len(t, d.Details().Reasons, 2)
	}
}
