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
	cmd.Long = "Serves the tools of other MCP servers, and the transaction tools. The file lists the servers in the form of MCP clients, and\n" +
		"has entries for their tools; remit init drafts the entries. The gateway pins each tool at the first start of its server. A tool\n" +
		"that is new or changed later is in quarantine until remit gateway accept shows and accepts it. With --own-tools, the gateway\n" +
		"also serves the built-in tools, like remit serve."
	own := false
	cmd.Flags().BoolVar(&own, "own-tools", false, "also serve the built-in tools; without it, --database and --definitions serve only their tools")
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
