package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/perm/rego"
)

func (a *app) policyTestCommand() *cobra.Command {
	var asJSON bool
	var least float64
	cmd := &cobra.Command{
		Use: "test [PATH]...", Short: "Run a policy's own tests, and say what they reach",
		Long: "Runs the rules of the *_test.rego files whose names begin with test_, with the policy of the given files and folders\n" +
			"(none: the workspace policy that holds by default). Of a test that fails it says which condition did not hold, and with\n" +
			"what values; of each file, how many of its rules and lines were reached.\n\n" +
			"Exit codes: 0 all passed; 2 usage, or a file that cannot be read; 5 a test failed, there is none, the policy does not\n" +
			"load, or less was reached than --coverage wants.",
		RunE: func(cmd *cobra.Command, paths []string) error { return a.policyTest(cmd, paths, least, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	cmd.Flags().Float64Var(&least, "coverage", 0, "`PERCENT` of the lines of each file that tests have to reach")
	return cmd
}

// testOutput is what testing a policy came to.
type testOutput struct {
	OK        bool                `json:"ok"`
	Revision  string              `json:"revision"`
	Passed    int                 `json:"passed"`
	Failed    int                 `json:"failed"`
	Problems  []rego.Problem      `json:"problems"`
	Tests     []rego.TestResult   `json:"tests"`
	Coverage  []rego.FileCoverage `json:"coverage"`
	Uncovered []string            `json:"uncovered"`
}

func (a *app) policyTest(cmd *cobra.Command, paths []string, least float64, asJSON bool) error {
	if least < 0 || least > 100 {
		return usage("--coverage is a percentage, from 0 to 100")
	}
	r := testOutput{Problems: []rego.Problem{}, Tests: []rego.TestResult{}, Coverage: []rego.FileCoverage{}, Uncovered: []string{}}
	engine, err := loadPolicy(paths, true)
	var report rego.TestReport
	if err == nil {
		r.Revision = engine.Revision()
		report, err = engine.Test(cmd.Context())
	}
	var bad *rego.LoadError
	if errors.As(err, &bad) {
		r.Problems, err = listed(bad.Problems), nil
	}
	if err != nil {
		return err
	}
	r.judge(report, least)
	if !r.OK {
		a.exitWith(exitFailed)
	}
	if asJSON {
		a.writeJSON(r)
		return nil
	}
	a.paint().tested(a.out, r)
	return nil
}

func (r *testOutput) judge(report rego.TestReport, least float64) {
	r.Tests, r.Coverage, r.Uncovered = listed(report.Results), listed(report.Coverage), listed(report.Uncovered)
	r.Failed = len(report.Failed())
	for _, t := range r.Tests {
		if t.Status == "pass" {
			r.Passed++
		}
	}
	if len(r.Problems) == 0 && r.Passed+r.Failed == 0 {
		r.Problems = append(r.Problems, rego.Problem{Text: "there is no test", Fix: "write rules test_… in a file whose name ends in _test.rego"})
	}
	for _, c := range r.Coverage {
		if c.Percent < least {
			r.Problems = append(r.Problems, rego.Problem{Text: fmt.Sprintf("tests reach %.1f %% of %s, and %g %% are wanted", c.Percent, c.File, least)})
		}
	}
	r.OK = r.Failed == 0 && len(r.Problems) == 0
}

func (p textStyle) tested(w io.Writer, r testOutput) {
	for _, t := range r.Tests {
		switch t.Status {
		case "pass":
			continue
		case "skip":
			_, _ = fmt.Fprintf(w, "%s skip %s: %s\n", p.doubt("·"), t.At, printable(t.Name))
			continue
		}
		_, _ = fmt.Fprintf(w, "%s %s %s: %s\n", p.bad("✗"), t.Status, t.At, printable(t.Name))
		p.details(w, &problem{why: t.Text})
		if t.Stopped != "" {
			_, _ = fmt.Fprintf(w, "     does not hold: %s\n", t.Stopped)
		}
		p.block(w, t.Saw)
		p.block(w, t.Output)
	}
	for _, c := range r.Coverage {
		_, _ = fmt.Fprintf(w, "%s %5.1f %%  %s  %d of %s, %d of %s\n",
			p.coverage(c), c.Percent, c.File, c.RulesReached, count(c.Rules, "rule"), c.LinesReached, count(c.Lines, "line"))
	}
	if len(r.Uncovered) > 0 {
		_, _ = fmt.Fprintf(w, "%s no test reaches %s\n", p.doubt("·"), strings.Join(r.Uncovered, ", "))
	}
	for _, bad := range r.Problems {
		_, _ = fmt.Fprintf(w, "%s %s\n", p.bad("✗"), printable(withPlace(bad.Text, bad.At)))
		p.details(w, &problem{fix: bad.Fix})
	}
	_, _ = fmt.Fprintf(w, "%s, %d failed\n", count(r.Passed+r.Failed, "test"), r.Failed)
}

func (p textStyle) coverage(c rego.FileCoverage) string {
	if c.LinesReached == c.Lines {
		return p.good("✓")
	}
	return p.doubt("·")
}

// block writes text of several lines below what it belongs to.
func (p textStyle) block(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		_, _ = fmt.Fprintln(w, "     "+printable(strings.ReplaceAll(line, "\t", "  ")))
	}
}
