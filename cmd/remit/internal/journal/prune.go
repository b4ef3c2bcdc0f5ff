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
		Use: "prune", Short: "Drop the records that revert old transactions, and free their space",
		Long: "Drops what the records of old calls hold, and kept content that nothing else names. What stays says which tools were\n" +
			"called, how that ended and what they changed, and the journal can still be checked. It never drops anything of a\n" +
			"transaction that is open, was reverted in part only, or has a call of unknown outcome: those are listed.\n" +
			"Age is counted in journal time: a gap of more than a day between two records counts as a day, so a clock that jumps\n" +
			"makes nothing old. It may run beside a server, and gives room back in small steps; remit serve --keep TIME does it by itself.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runPrune(cmd.Context(), a, &p, keep, asJSON) },
	}
	state.AddFlags(cmd, &p)
	cli.AddRetentionFlags(cmd, &keep, "")
	cmd.Flags().BoolVar(&keep.DryRun, "dry-run", false, "only say what would go")
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
