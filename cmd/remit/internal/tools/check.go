package tools

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/review"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/tool"
)

// selectTools returns the tools with these names, or all. It returns an error for an
// unknown name.
func selectTools(tools []tool.Tool, names []string) ([]tool.Tool, error) {
	var out []tool.Tool
	for _, name := range names {
		if !slices.ContainsFunc(tools, func(t tool.Tool) bool { return t.Name() == name || t.QualifiedName() == name }) {
			return nil, &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("there is no tool %q", name), Why: "names are taken exactly as they are written", Fix: "remit tools lists them"}
		}
	}
	for _, t := range tools {
		if len(names) == 0 || slices.Contains(names, t.Name()) || slices.Contains(names, t.QualifiedName()) {
			out = append(out, t)
		}
	}
	return out, nil
}

func checkCommand(a *cli.App) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use: "check [NAME]...", Short: "Report declarations that mislead models or users",
		Long: "Checks declarations as a model reads them. It reports descriptions that are missing or have more than 200 characters,\n" +
			"names that are not snake_case, schemas that are ambiguous or accept anything, defaults that their schema refuses, and\n" +
			"tools that a model can confuse. It also reports effects without verification, revert or grade. Each finding has a\n" +
			"place and a fix.",
		RunE: func(_ *cobra.Command, names []string) error {
			return checkTools(a, f, names)
		},
	}
	state.AddDefinitionsFlag(cmd, &f.definitions)
	state.AddServicesFlag(cmd, &f.services)
	cmd.Flags().BoolVar(&f.strict, "strict", false, "exit with code 5 if there is a finding")
	cmd.Flags().BoolVar(&f.json, "json", false, "write one JSON object per line, for each finding")
	return cmd
}

// checkFlags holds the flags of remit tools check.
type checkFlags struct {
	definitions  []string
	services     state.Services
	strict, json bool
}

func checkTools(a *cli.App, f checkFlags, names []string) error {
	all, err := state.DefinedTools(a, f.definitions, nil)
	if err != nil {
		return err
	}
	calls, err := f.services.Tools()
	if err != nil {
		return err
	}
	tools := append(all.All(), calls...)
	asked, err := selectTools(tools, names)
	if err != nil {
		return err
	}
	// Check all tools: a named one can resemble another one.
	found := slices.DeleteFunc(review.Tools(tools...), func(found review.Finding) bool {
		return !slices.ContainsFunc(asked, func(t tool.Tool) bool { return t.Name() == found.Tool })
	})
	if f.strict && len(found) > 0 {
		a.ExitWith(cli.ExitFailed)
	}
	p := a.Style()
	for _, finding := range found {
		if f.json {
			a.WriteJSON(finding)
			continue
		}
		_, _ = fmt.Fprintf(a.Out, "%s %s %s\n    %s\n    %s %s\n", p.Doubt("?"), p.Bold(cli.Printable(finding.Tool)), cli.Printable(finding.Path), cli.Printable(finding.What), p.Faint("fix"), finding.Fix)
	}
	if !f.json {
		_, _ = fmt.Fprintf(a.Out, "%s looked at: %s\n", cli.Count(len(asked), "tool"), cli.Count(len(found), "finding"))
	}
	return nil
}
