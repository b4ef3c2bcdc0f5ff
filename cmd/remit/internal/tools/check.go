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
	var definitions []string
	var strict, asJSON bool
	cmd := &cobra.Command{
		Use: "check [NAME]...", Short: "Warn of what makes models call tools wrongly, and people trust them for no reason",
		Long: "Looks at declarations as a model meets them: descriptions that are missing or over 200 characters, names that are not\n" +
			"snake_case, schemas that can be read in two ways or take anything, defaults that they refuse, tools that could be taken for one\n" +
			"another; and at effects without verification, revert or grade. Each finding says where, and what to do.",
		RunE: func(_ *cobra.Command, names []string) error {
			return checkTools(a, definitions, names, strict, asJSON)
		},
	}
	state.AddDefinitionsFlag(cmd, &definitions)
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 5 where there is a finding")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line, one for each finding")
	return cmd
}

func checkTools(a *cli.App, definitions, names []string, strict, asJSON bool) error {
	all, err := state.DefinedTools(a, definitions, nil)
	if err != nil {
		return err
	}
	tools := all.All()
	asked, err := selectTools(tools, names)
	if err != nil {
		return err
	}
	// Check all tools: a named one can resemble another one.
	found := slices.DeleteFunc(review.Tools(tools...), func(f review.Finding) bool {
		return !slices.ContainsFunc(asked, func(t tool.Tool) bool { return t.Name() == f.Tool })
	})
	if strict && len(found) > 0 {
		a.ExitWith(cli.ExitFailed)
	}
	p := a.Style()
	for _, f := range found {
		if asJSON {
			a.WriteJSON(f)
			continue
		}
		_, _ = fmt.Fprintf(a.Out, "%s %s %s\n    %s\n    %s %s\n", p.Doubt("?"), p.Bold(cli.Printable(f.Tool)), cli.Printable(f.Path), cli.Printable(f.What), p.Faint("fix"), f.Fix)
	}
	if !asJSON {
		_, _ = fmt.Fprintf(a.Out, "%s looked at: %s\n", cli.Count(len(asked), "tool"), cli.Count(len(found), "finding"))
	}
	return nil
}
