package tools

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/tool/define"
)

func defineCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "define NAME", Short: "Print a definition file that narrows a built-in tool",
		Long: "Prints the declaration of a built-in tool as a definition file (docs/guides/define.md). Narrow it in an editor, and name its\n" +
			"folder with --definitions. remit tools --definitions DIR reports each place where the file allows more than the tool.",
		Args: cli.WantArgs(1, 1, "the name of one tool"),
		RunE: func(_ *cobra.Command, names []string) error {
			named, err := selectTools(a.BuiltinTools(), names)
			if err != nil {
				return err
			}
			text, err := define.Write(named[0], "builtin/"+named[0].Name())
			if err != nil {
				return err
			}
			if asJSON {
				a.WriteJSON(json.RawMessage(text))
				return nil
			}
			_, err = a.Out.Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the file on one line")
	return cmd
}
