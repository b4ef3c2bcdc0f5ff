package journal

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
)

// writeJournals lists the journals in the user's state folder, with the command
// that reads each.
func writeJournals(ctx context.Context, a *cli.App, asJSON bool) error {
	all, err := state.Journals(ctx, a)
	if err != nil {
		return err
	}
	p := a.Style()
	for _, k := range all {
		if asJSON {
			a.WriteJSON(k)
			continue
		}
		when := "empty"
		if k.Newest != nil {
			when = k.Newest.Local().Format("2006-01-02 15:04:05")
		}
		folder := k.Workspace
		if folder == "" {
			folder = "no workspace"
		}
		_, _ = fmt.Fprintf(a.Out, "%s  %s", p.Faint(when), p.Bold(cli.Printable(folder)))
		if k.Missing {
			_, _ = fmt.Fprint(a.Out, "  "+p.Doubt("nothing is there any more"))
		}
		if k.Problem != "" {
			_, _ = fmt.Fprint(a.Out, "  "+p.Bad(cli.Printable(k.Problem)))
		}
		_, _ = fmt.Fprintf(a.Out, "\n  remit log --state %s\n", cli.Printable(cli.Quote(k.State)))
	}
	if len(all) == 0 && !asJSON {
		_, _ = fmt.Fprintln(a.Out, "there is no journal yet")
	}
	return nil
}
