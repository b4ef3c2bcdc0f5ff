package journal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// FsckCommand returns remit fsck.
func FsckCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var asJSON, accept bool
	var kept string
	cmd := &cobra.Command{
		Use: "fsck", Short: "Check the whole journal, and report each problem",
		Long: "Checks each record, the tree over the records, transactions, claims and stored content. It changes no record, and\n" +
			"prints the tree head at the end. Store the head in another place: given with --head later, it shows whether an earlier\n" +
			"entry was changed or cut off, which the journal alone cannot show. If promised entries or journal.head are missing,\n" +
			"every other command refuses to run. --accept-head continues with the entries that are there, and records your name.\n\n" +
			"Exit codes: 1 the journal has problems; the command lists each of them.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if accept {
				return acceptHead(cmd.Context(), a, &p, asJSON)
			}
			return runFsck(cmd.Context(), a, &p, kept, asJSON)
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().StringVar(&kept, "head", "", "tree head to compare with, as `SIZE:ROOT`, from a place outside the journal")
	cmd.Flags().BoolVar(&accept, "accept-head", false, "continue without the missing entries, and record your name")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object per line: each problem, then the report")
	return cmd
}

func runFsck(ctx context.Context, a *cli.App, p *state.Workspace, kept string, asJSON bool) error {
	if err := p.Find(a); err != nil {
		return err
	}
	o := revert.FsckOptions{Found: func(found revert.Problem) {
		if asJSON {
			a.WriteJSON(found)
		} else {
			writeFsckProblem(a.Style(), a.Out, found)
		}
	}}
	if kept != "" {
		var err error
		if o.Kept, err = journal.ParseHead(kept); err != nil {
			return &cli.Problem{Code: cli.ExitUsage, What: "--head: " + err.Error(), Fix: "give the head as an earlier check wrote it"}
		}
	}
	if p.IsShared() {
		return fsckShared(ctx, a, p, o, asJSON)
	}
	report, err := sqlite.Fsck(ctx, p.StateDir, o)
	if err != nil && (report.Problems == 0 || !errors.Is(err, record.ErrDamaged)) {
		return err // the check could not run
	}
	if asJSON {
		a.WriteJSON(report)
	} else {
		writeFsckReport(a.Style(), a.Out, report)
	}
	if report.Problems > 0 {
		fix := "copy the folder before anything else opens it; what can still be read, " + p.Hint("log") + " and " + p.Hint("show", "ID") + " tell"
		if report.Incomplete {
			fix = state.RestoreHint(p)
		}
		return &cli.Problem{
			Code: cli.ExitInternal, What: fmt.Sprintf("the journal in %s has %s", p.StateDir, cli.Count(int(report.Problems), "problem")), Fix: fix,
		}
	}
	return nil
}

// acceptHead accepts an incomplete journal.
func acceptHead(ctx context.Context, a *cli.App, p *state.Workspace, asJSON bool) error {
	if err := p.Find(a); err != nil {
		return err
	}
	if p.IsShared() {
		return &cli.Problem{
			Code: cli.ExitUsage, What: "--accept-head needs a journal in a state folder", Why: "a journal in PostgreSQL has no head file, so remit refuses none because of it",
			Fix: "restore the database from its backup if " + p.Hint("fsck") + " finds that entries are missing",
		}
	}
	who, err := a.Person()
	if err != nil {
		return err
	}
	if !sqlite.Exists(p.StateDir) {
		return fmt.Errorf("journal in %s: %w", p.StateDir, journal.ErrNotFound)
	}
	what, err := sqlite.Accept(ctx, p.StateDir, who)
	if err != nil {
		return err
	}
	if asJSON {
		a.WriteJSON(what)
		return nil
	}
	missing := "how many entries are missing is not known"
	if what.Promised != "" {
		missing = cli.Entries(what.Missing) + " missing"
	}
	_, _ = fmt.Fprintf(a.Out, "accepted by %s: %s\n", cli.Printable(who), missing)
	_, _ = fmt.Fprintf(a.Out, "head %s\n", what.Found)
	return nil
}

func writeFsckProblem(p cli.Style, w io.Writer, found revert.Problem) {
	where := ""
	if found.Pos > 0 {
		where = fmt.Sprintf("entry %d: ", found.Pos)
	}
	_, _ = fmt.Fprintf(w, "%s %s%s\n", p.Bad("✗"), where, cli.Printable(found.What))
}

func writeFsckReport(p cli.Style, w io.Writer, r sqlite.FsckReport) {
	_, _ = fmt.Fprintf(w, "%s looked at, of %s; content named %s\n", cli.Entries(r.Entries), cli.Count(int(r.Txns), "transaction"), cli.Count(int(r.Blobs), "time"))
	if r.Missing > 0 {
		_, _ = fmt.Fprintln(w, p.Bad("missing: "+cli.Entries(r.Missing)))
	}
	if r.Erased > 0 {
		_, _ = fmt.Fprintln(w, p.Faint("erased, and accounted for: "+cli.Entries(r.Erased)))
	}
	if r.Unnamed+r.Leftover > 0 {
		_, _ = fmt.Fprintln(w, p.Faint(fmt.Sprintf("left by crashes, which is no problem: %s that nothing names, %s", cli.Count(int(r.Unnamed), "blob"), cli.Count(int(r.Leftover), "unfinished file"))))
	}
	if r.Alive > 0 {
		_, _ = fmt.Fprintln(w, p.Faint(fmt.Sprintf("in use by %s: its write-ahead log was not checked", cli.Count(r.Alive, "living opening"))))
	}
	if r.Head.Root != "" {
		_, _ = fmt.Fprintf(w, "head %s\n", r.Head)
	}
}
