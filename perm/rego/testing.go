package rego

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// TestReport is the result of the tests of a policy.
type TestReport struct {
	Results   []TestResult   `json:"results"`             // by file, line and name
	Uncovered []string       `json:"uncovered,omitempty"` // file:line of rules and conditions that no test covers
	Coverage  []FileCoverage `json:"coverage"`            // coverage of each file that decides
}

// TestResult is the result of one rule whose name begins with test_.
type TestResult struct {
	Name   string `json:"name"`
	At     string `json:"at"`
	Status string `json:"status"`           // pass, fail, error, skip
	Text   string `json:"text,omitempty"`   // error text
	Output string `json:"output,omitempty"` // output of print

	Stopped string `json:"stopped,omitempty"` // file:line of the condition that did not hold
	Saw     string `json:"saw,omitempty"`     // that condition, and the values in it
}

// Failed returns the tests that did not pass, without skipped ones.
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
// test_, and reports which lines of the policy they cover. It returns a
// *LoadError for tests that do not compile. The report contains tests that
// fail.
func (e *Engine) Test(ctx context.Context) (TestReport, error) {
	if e == nil || e.rules == nil {
		return TestReport{}, errors.New("rego: no policy is loaded")
	}
	lines := cover.New()
	results, err := e.runTests(ctx, func(r *tester.Runner) *tester.Runner { return r.SetCoverageQueryTracer(lines).SetCoverageRuns(nil) })
	if err != nil {
		return TestReport{}, err
	}
	report := TestReport{}
	for _, r := range results {
		report.Results = append(report.Results, testResult(r))
	}
	if len(report.Failed()) > 0 {
		if err := e.traceFailures(ctx, report.Results); err != nil {
			return TestReport{}, err
		}
	}
	slices.SortFunc(report.Results, func(a, b TestResult) int {
		return cmp.Or(comparePlaces(a.At, b.At), cmp.Compare(a.Name, b.Name))
	})
	reached := lines.Report(e.modules.parsed)
	report.Uncovered, report.Coverage = uncovered(reached, e.modules), coverage(reached, e.modules)
	return report, nil
}

// testTimeout bounds one test of a policy. It is a last resort for a test that
// does not end: on a machine with much other work, a test can need a hundred
// times its usual time.
const testTimeout = 2 * time.Minute

// hideMembers keeps each "x in y" of a rule from OPA's index, which OPA's runner
// of tests always uses, and which can skip a rule that holds (see topdown). The
// index ignores a condition whose result has a name or a value.
func hideMembers(c *ast.Compiler) *ast.Error {
	for _, mod := range c.Modules {
		ast.WalkRules(mod, func(rule *ast.Rule) bool {
			for _, e := range rule.Body {
				terms, call := e.Terms.([]*ast.Term)
				if call && !e.Negated && callName(e) == ast.Member.Name && len(e.Operands()) == 2 {
					e.Terms = append(slices.Clip(terms), ast.BooleanTerm(true))
				}
			}
			return false
		})
	}
	return nil
}

// runTests runs every test once.
func (e *Engine) runTests(ctx context.Context, with func(*tester.Runner) *tester.Runner) ([]*tester.Result, error) {
	c, err := newCompiler()
	if err != nil {
		return nil, err
	}
	all := maps.Clone(e.modules.parsed)
	maps.Copy(all, e.modules.tests)
	c = c.WithEnablePrintStatements(true).WithStageAfterID(ast.StageCheckDeprecatedBuiltins,
		ast.CompilerStageDefinition{Name: "HideMembers", MetricName: "remit_hide_members", Stage: hideMembers})
	results, err := with(tester.NewRunner()).
		SetCompiler(c).
		SetStore(e.rules.store).
		SetModules(all).
		CapturePrintOutput(true).
		SetTimeout(testTimeout).
		RaiseBuiltinErrors(true).
		AddCustomBuiltins(pastTestBuiltins()).
		RunTests(ctx, nil)
	if err != nil {
		var found problems
		found.addOPA(err, e.modules.fix(""))
		return nil, found.err()
	}
	var list []*tester.Result
	for r := range results {
		list = append(list, r)
	}
	if ctx.Err() != nil {
		return nil, cancelled(ctx)
	}
	return list, e.modules.checkTestNames(c, e.data)
}

// traceFailures repeats the failed tests with a trace. It adds the position and
// the values of each failure. A traced test costs several times as much.
func (e *Engine) traceFailures(ctx context.Context, results []TestResult) error {
	var failed []string
	for _, r := range results {
		if r.Status == "fail" {
			failed = append(failed, regexp.QuoteMeta(r.Name))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	traced, err := e.runTests(ctx, func(r *tester.Runner) *tester.Runner {
		return r.EnableTracing(true).Filter(strings.Join(failed, "|")) // also matches similar names; the loop below skips these
	})
	if err != nil {
		return err
	}
	for _, t := range traced {
		for i := range results {
			if r := &results[i]; r.Status == "fail" && r.Name == t.Name && r.At == at(t.Location) {
				r.Stopped, r.Saw = stopped(t.Trace)
			}
		}
	}
	return nil
}

// stopped finds the last condition that did not hold, and writes its values
// below it.
func stopped(trace []*topdown.Event) (where, saw string) {
	for _, event := range slices.Backward(trace) {
		expr, isExpr := event.Node.(*ast.Expr)
		if event.Op != topdown.FailOp || !isExpr || event.Location == nil || event.QueryID == 0 {
			continue
		}
		if _, every := expr.Terms.(*ast.Every); every { // a condition inside it did not hold
			continue
		}
		var text strings.Builder
		if err := topdown.PrettyEvent(&text, event, topdown.PrettyEventOpts{PrettyVars: true}); err != nil {
			return at(event.Location), ""
		}
		return at(event.Location), strings.Trim(text.String(), "\n")
	}
	return "", ""
}

// comparePlaces orders positions by file, then by line.
func comparePlaces(a, b string) int {
	fileA, rowA, _ := strings.Cut(a, ".rego:")
	fileB, rowB, _ := strings.Cut(b, ".rego:")
	return cmp.Or(cmp.Compare(fileA, fileB), cmp.Compare(len(rowA), len(rowB)), cmp.Compare(rowA, rowB))
}

func testResult(r *tester.Result) TestResult {
	t := TestResult{Name: r.Name, At: at(r.Location), Output: string(r.Output), Status: "pass"}
	switch {
	case r.Skip:
		t.Status = "skip"
	case r.Error != nil:
		t.Status, t.Text = "error", r.Error.Error()
		if topdown.IsCancel(r.Error) {
			t.Text = fmt.Sprintf("the test did not end within %v", testTimeout)
		}
	case r.Fail:
		t.Status = "fail"
	}
	return t
}

// uncovered returns the lines of deciding rules that no test covers.
func uncovered(report cover.Report, m *modules) []string {
	var out []string
	for _, name := range m.own() {
		for _, r := range report.Files[name].NotCovered {
			if line := fmt.Sprintf("%s:%d", name, r.Start.Row); !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	return out
}
