package serve

import (
	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

// GatewayCommand returns remit gateway without its subcommands.
func GatewayCommand(a *cli.App) *cobra.Command {
	cmd := Command(a)
	cmd.Use, cmd.Short = "gateway --config FILE [flags]", "Serve the tools of other MCP servers, with policy and undo"
	cmd.Long = "Serves the tools of other MCP servers, and those of transactions. The file lists the servers as clients have them, and says\n" +
		"what is known of their tools; remit init drafts that. Each tool is pinned when it is first seen; one that is new or has\n" +
		"changed is in quarantine until remit gateway accept has shown and accepted it. With --own-tools remit's own tools for\n" +
		"files, programs and the web are served too, as remit serve does."
	own := false
	cmd.Flags().BoolVar(&own, "own-tools", false, "serve remit's own tools too; --database and --definitions serve the tools that they name without it")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("config") {
			return cli.UsageProblem("--config names the file that lists the servers")
		}
		if !own {
			databases := cmd.Flags().Changed("database")
			a.LeftOut = func(t tool.Tool) bool { return ownTool(t, databases) }
		}
		return nil
	}
	return cmd
}

// ownTool reports whether a tool is built in and no flag requests it.
func ownTool(t tool.Tool, databases bool) bool {
	from := t.Spec().Provenance
	asked := from.Implementation != "" || databases && from.Name == "tool/builtin/database"
	return from.Kind == provenance.Builtin && !asked
}
