package doctor

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/version"
)

// VersionCommand returns remit version.
func VersionCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version",
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := version.Read()
			if asJSON {
				a.WriteJSON(v)
				return nil
			}
			_, err := fmt.Fprintln(a.Out, v)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}
