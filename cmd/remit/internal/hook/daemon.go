package hook

import (
	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// DaemonCommand returns remit daemon.
func DaemonCommand(a *cli.App) *cobra.Command {
	var readyFD int
	cmd := &cobra.Command{
		Use: "daemon", Short: "Run the resident process that decides for coding agents",
		Long: "Decides for the coding agents of this user, and keeps their sessions, policies and journals open. The first event of an\n" +
			"agent starts it, and it ends after 30 minutes without a session. People need this command only to see what it writes.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDaemon(cmd.Context(), a, readyFD)
		},
	}
	cmd.Flags().IntVar(&readyFD, "ready-fd", 0, "descriptor `FD` to which remit writes a line when it listens")
	_ = cmd.Flags().MarkHidden("ready-fd") // the flag exists
	return cmd
}
