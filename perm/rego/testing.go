package rego

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/tester"
)

// TestReport is the outcome of the tests that belong to a policy.
type TestReport struct {
	Results   []TestResult `json:"results"`             // by file, line and name
	Uncovered []string     `json:"uncovered,omitempty"` // file:line of rules and conditions that no test reached
}

// TestResult is the outcome of one rule whose name begins with test_.
type TestResult struct {
	Name   string `json:"name"`
	At     string `json:"at"`
	Status string `json:"status"`           // pass, fail, error, skip
	Text   string `json:"text,omitempty"`   // the error
	Output string `json:"output,omitempty"` // what print wrote
}

// Failed lists the tests that did not pass, without those that are skipped.
func (r TestReport) Failed() []TestResult {
	var out []TestResult
	for _, t := range r.Results {
		if t.Status == "fail" || t.Status == "error" {
			out = append(out, t)
		}
	}
	return out
}

// Test runs the rules of the policy's *_test.rego files whose names begin with
// test_, and tells which lines of the policy they reached. Tests that do not
// compile are a *LoadError; tests that fail are in the report.
func (e *Engine) Test(ctx context.Context) (TestReport, error) {
	if e == nil || e.rules == nil {
		return TestReport{}, errors.New("rego: no policy is loaded")
	}
	c, err := newCompiler()
	if err != nil {
		return TestReport{}, err
	}
	all := maps.Clone(e.modules.parsed)
	maps.Copy(all, e.modules.tests)
	lines := cover.New()
	results, err := tester.NewRunner().
		SetCompiler(c.WithEnablePrintStatements(true)).
		SetStore(e.rules.store).
		SetModules(all).
		SetCoverageQueryTracer(lines).
		SetCoverageRuns(nil).
		CapturePrintOutput(true).
		RaiseBuiltinErrors(true).
		RunTests(ctx, nil)
	if err != nil {
		var found problems
		found.addOPA(err)
		return TestReport{}, found.err()
	}
	report := TestReport{}
	for r := range results {
		report.Results = append(report.Results, testResult(r))
	}
	if ctx.Err() != nil {
		return TestReport{}, cancelled(ctx)
	}
	slices.SortFunc(report.Results, func(a, b TestResult) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Name, b.Name))
	})
	report.Uncovered = uncovered(lines.Report(e.modules.parsed), e.modules)
	return report, nil
}

func testResult(r *tester.Result) TestResult {
	t := TestResult{Name: r.Name, At: at(r.Location), Output: string(r.Output), Status: "pass"}
	switch {
	case r.Skip:
		t.Status = "skip"
	case r.Error != nil:
		t.Status, t.Text = "error", r.Error.Error()
	case r.Fail:
		t.Status = "fail"
	}
	return t
}

// uncovered lists the lines of what decides that no test reached.
func uncovered(report cover.Report, m *modules) []string {
	var out []string
	for _, name := range m.names {
		for _, r := range report.Files[name].NotCovered {
			if line := fmt.Sprintf("%s:%d", name, r.Start.Row); !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	return out
}
