package journal

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
)

// PruneCommand returns remit prune.
func PruneCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var asJSON bool
	keep := revert.Retention{MaxAge: revert.DefaultKeep, KeepLast: revert.DefaultKeepLast}
	cmd := &cobra.Command{
		Use: "prune", Short: "Delete revert data of old transactions and free disk space",
		Long: "Deletes the content of the records of old calls, and stored content that no other record names. The journal keeps the\n" +
			"tools, the outcomes and the changed resources, and can still be checked. The command never deletes data of a\n" +
			"transaction that is open, was reverted only in part, or has a call with an unknown outcome; it lists these\n" +
			"transactions.\n\n" +
			"Age is measured in journal time: a gap of more than a day between two records counts as a day. So a clock that jumps\n" +
			"makes no transaction old. The command can run while a server runs, and frees space in small steps. remit serve --keep\n" +
			"TIME prunes by itself.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runPrune(cmd.Context(), a, &p, keep, asJSON) },
	}
	state.AddFlags(cmd, &p)
	cli.AddRetentionFlags(cmd, &keep, "")
	cmd.Flags().BoolVar(&keep.DryRun, "dry-run", false, "report what remit would delete, and delete nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

func runPrune(ctx context.Context, a *cli.App, p *state.Workspace, keep revert.Retention, asJSON bool) error {
	return startup.WithRuntime(ctx, a, p, func(rt *agent.Runtime) error {
		done, err := rt.Prune(ctx, keep)
		if err != nil {
			return err
		}
		if asJSON {
			a.WriteJSON(done)
		} else {
			writePruned(a.Style(), a.Out, done, keep.DryRun, p)
		}
		return nil
	})
}

func writePruned(p cli.Style, w io.Writer, r revert.PruneReport, dry bool, where *state.Workspace) {
	switch {
	case r.Txns == 0:
		_, _ = fmt.Fprintln(w, "nothing is past retention")
	case dry:
		_, _ = fmt.Fprintf(w, "would drop the records of %s, which could then not be reverted, and up to %s of content\n", cli.Count(r.Txns, "transaction"), cli.Bytes(r.Content))
	default:
		_, _ = fmt.Fprintf(w, "%s dropped the records of %s, which can no longer be reverted\n", p.Good("✓"), cli.Count(r.Txns, "transaction"))
	}
	for _, o := range r.Kept {
		_, _ = fmt.Fprintf(w, "%s %s is old and was kept: %s\n", p.Doubt("?"), o.Txn, cli.Printable(o.Why))
	}
	if !dry {
		_, _ = fmt.Fprintf(w, "%s dropped; the state is %s smaller, and has %s\n", cli.Count(int(r.Blobs), "content"), cli.Bytes(r.Freed), cli.Bytes(r.Size))
	}
	if r.Waiting != "" {
		_, _ = fmt.Fprintf(w, "%s %s\n     again  %s\n", p.Doubt("?"), r.Waiting, where.Hint("prune"))
	}
}
