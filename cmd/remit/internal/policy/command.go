package policy

import (
	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// Command returns remit policy.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Create, check and evaluate policies",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCommand(a), checkCommand(a), formatCommand(a), testCommand(a), evalCommand(a), explainCommand(a), backtestCommand(a), diffCommand(a), learnCommand(a), schemaCommand(a))
	return cmd
}
