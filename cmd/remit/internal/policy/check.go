package policy

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/tool"
)

func checkCommand(a *cli.App) *cobra.Command {
	var f policyCheckFlags
	cmd := &cobra.Command{
		Use: "check PATH...", Short: "Check a policy and run its tests",
		Long: "Loads the policy of the given files, folders and packs (builtin:PACK), and runs its *_test.rego files. It reports each\n" +
			"mistake with its place, and warns about rules that do not do what their author means. One line sums up what the check\n" +
			"does not cover and what makes decisions slow; --notes lists it.\n\n" +
			"The command compares the rules with the built-in tools and those of --definitions and --services. With --tools, it\n" +
			"warns about each other tool name.\n\n" +
			"Exit codes: 0 no fault; 2 usage, or a file that cannot be read; 5 a fault, or with --strict a warning.",
		Args: func(_ *cobra.Command, paths []string) error {
			if len(paths) > 0 {
				return nil
			}
			e := cli.UsageProblem("there is no policy to check")
			e.Fix = "name its files or folders: remit policy check policy.rego"
			return e
		},
		RunE: func(cmd *cobra.Command, paths []string) error { return runCheck(a, cmd, paths, f) },
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "write one JSON object")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "exit with code 5 if there is a warning")
	cmd.Flags().BoolVar(&f.notes, "notes", false, "list what the check does not cover, and what makes decisions slow (default: only their number)")
	cmd.Flags().BoolVar(&f.tools, "tools", false, "warn about each tool name that does not exist")
	state.AddDefinitionsFlag(cmd, &f.definitions)
	state.AddServicesFlag(cmd, &f.services)
	return cmd
}

// policyCheckFlags holds the flags of remit policy check.
type policyCheckFlags struct {
	json, strict, tools, notes bool
	definitions                []string
	services                   state.Services
}

// CheckOutput is the JSON form of a check.
type CheckOutput struct {
	OK        bool                `json:"ok"`
	Revision  string              `json:"revision"`
	Problems  []rego.Problem      `json:"problems"`
	Warnings  []rego.Problem      `json:"warnings"` // rules that differ from what their author means
	Unchecked []rego.UncheckedRef `json:"unchecked"`
	Slow      []rego.UncheckedRef `json:"slow"` // parts of rules that make decisions slower
	Tests     []rego.TestResult   `json:"tests"`
	Uncovered []string            `json:"uncovered"`
}

func runCheck(a *cli.App, cmd *cobra.Command, paths []string, f policyCheckFlags) error {
	tools, err := state.DefinedTools(a, f.definitions, nil)
	if err != nil {
		return err
	}
	calls, err := f.services.Tools()
	if err != nil {
		return err
	}
	c, err := check(cmd, paths, slices.Concat(tools.All(), calls), f.tools)
	if err != nil {
		return err
	}
	if !c.OK || f.strict && len(c.Warnings) > 0 {
		a.ExitWith(cli.ExitFailed)
	}
	if f.json {
		a.WriteJSON(c)
		return nil
	}
	writeCheck(a.Style(), a.Out, c, f.notes)
	return nil
}

// check loads and tests a policy. Problems of the policy are in the output; an
// error means that the check could not run.
func check(cmd *cobra.Command, paths []string, tools []tool.Tool, closed bool) (CheckOutput, error) {
	c := CheckOutput{Problems: []rego.Problem{}, Warnings: []rego.Problem{}, Unchecked: []rego.UncheckedRef{}, Slow: []rego.UncheckedRef{}, Tests: []rego.TestResult{}, Uncovered: []string{}}
	engine, err := policyfile.Load(paths, true)
	var report rego.TestReport
	if err == nil {
		c.Revision, c.Unchecked, c.Slow = engine.Revision(), cli.Listed(engine.UncheckedRefs()), cli.Listed(engine.SlowRules())
		c.Warnings = cli.Listed(engine.WarningsFor(policyfile.Tools(tools), closed))
		report, err = engine.Test(cmd.Context())
	}
	var bad *rego.LoadError
	if errors.As(err, &bad) {
		c.Problems = cli.Listed(bad.Problems)
		return c, nil
	}
	c.Tests, c.Uncovered = cli.Listed(report.Results), cli.Listed(report.Uncovered)
	c.OK = len(report.Failed()) == 0
	return c, err
}
