package policy

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/perm/rego"
)

func testCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	var least float64
	cmd := &cobra.Command{
		Use: "test [PATH]...", Short: "Run the tests of a policy, and report which lines they reach",
		Long: "Runs the rules of the *_test.rego files whose names begin with test_, with the policy of the given files and folders\n" +
			"(default: the workspace policy). For a failed test, it reports the condition that did not hold, and the values. For\n" +
			"each file, it reports how many rules and lines the tests reach.\n\n" +
			"Exit codes: 0 all tests passed; 2 usage, or a file that cannot be read; 5 a test failed, there is no test, the policy\n" +
			"does not load, or the tests reach less than --coverage requires.",
		RunE: func(cmd *cobra.Command, paths []string) error { return runTests(a, cmd, paths, least, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	cmd.Flags().Float64Var(&least, "coverage", 0, "minimum `PERCENT` of the lines of each file that the tests must reach")
	return cmd
}

// testOutput is the JSON form of a test run.
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

func runTests(a *cli.App, cmd *cobra.Command, paths []string, least float64, asJSON bool) error {
	if least < 0 || least > 100 {
		return cli.UsageProblem("--coverage is a percentage, from 0 to 100")
	}
	r := testOutput{Problems: []rego.Problem{}, Tests: []rego.TestResult{}, Coverage: []rego.FileCoverage{}, Uncovered: []string{}}
	engine, err := policyfile.Load(paths, true)
	var report rego.TestReport
	if err == nil {
		r.Revision = engine.Revision()
		report, err = engine.Test(cmd.Context())
	}
	var bad *rego.LoadError
	if errors.As(err, &bad) {
		r.Problems, err = cli.Listed(bad.Problems), nil
	}
	if err != nil {
		return err
	}
	r.judge(report, least)
	if !r.OK {
		a.ExitWith(cli.ExitFailed)
	}
	if asJSON {
		a.WriteJSON(r)
		return nil
	}
	writeTests(a.Style(), a.Out, r)
	return nil
}

func (r *testOutput) judge(report rego.TestReport, least float64) {
	r.Tests, r.Coverage, r.Uncovered = cli.Listed(report.Results), cli.Listed(report.Coverage), cli.Listed(report.Uncovered)
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

func writeTests(p cli.Style, w io.Writer, r testOutput) {
	for _, t := range r.Tests {
		switch t.Status {
		case "pass":
			continue
		case "skip":
			_, _ = fmt.Fprintf(w, "%s skip %s: %s\n", p.Doubt("·"), t.At, cli.Printable(t.Name))
			continue
		}
		_, _ = fmt.Fprintf(w, "%s %s %s: %s\n", p.Bad("✗"), t.Status, t.At, cli.Printable(t.Name))
		p.Details(w, &cli.Problem{Why: t.Text})
		if t.Stopped != "" {
			_, _ = fmt.Fprintf(w, "     does not hold: %s\n", t.Stopped)
		}
		writeBlock(w, t.Saw)
		writeBlock(w, t.Output)
	}
	for _, c := range r.Coverage {
		_, _ = fmt.Fprintf(w, "%s %5.1f %%  %s  %d of %s, %d of %s\n",
			coverageMark(p, c), c.Percent, c.File, c.RulesReached, cli.Count(c.Rules, "rule"), c.LinesReached, cli.Count(c.Lines, "line"))
	}
	if len(r.Uncovered) > 0 {
		_, _ = fmt.Fprintf(w, "%s no test reaches %s\n", p.Doubt("·"), strings.Join(r.Uncovered, ", "))
	}
	for _, bad := range r.Problems {
		_, _ = fmt.Fprintf(w, "%s %s\n", p.Bad("✗"), cli.Printable(cli.WithPlace(bad.Text, bad.At)))
		p.Details(w, &cli.Problem{Fix: bad.Fix})
	}
	_, _ = fmt.Fprintf(w, "%s, %d failed\n", cli.Count(r.Passed+r.Failed, "test"), r.Failed)
}

func coverageMark(p cli.Style, c rego.FileCoverage) string {
	if c.LinesReached == c.Lines {
		return p.Good("✓")
	}
	return p.Doubt("·")
}

// writeBlock writes indented lines.
func writeBlock(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		_, _ = fmt.Fprintln(w, "     "+cli.Printable(strings.ReplaceAll(line, "\t", "  ")))
	}
}
