package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/postgres"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// fsckShared checks a journal in PostgreSQL.
func fsckShared(ctx context.Context, a *cli.App, p *state.Workspace, o revert.FsckOptions, asJSON bool) (err error) {
	j, err := p.Read(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	shared, ok := state.PostgresOf(j)
	if !ok {
		return errors.New("the journal cannot be checked")
	}
	report, err := postgres.Fsck(ctx, shared, o)
	if err != nil && (report.Problems == 0 || !errors.Is(err, record.ErrDamaged)) {
		return err // the check could not run
	}
	if asJSON {
		a.WriteJSON(report)
	} else {
		alive := report.Alive
		writeFsckReport(a.Style(), a.Out, sqlite.FsckReport{FsckReport: report.FsckReport, Unnamed: report.Unnamed, Leftover: report.Leftover})
		if alive > 0 {
			_, _ = fmt.Fprintln(a.Out, a.Style().Faint("in use by "+cli.Count(alive, "other opening")))
		}
	}
	if report.Problems > 0 && report.Problems == report.Requests {
		return &cli.Problem{
			Code: cli.ExitInternal, What: fmt.Sprintf("the journal %s has %s between nodes", p.Journal, cli.Count(int(report.Requests), "damaged request")),
			Why: "its records are correct; a bad disk or a role that can write to the tables left the requests", Fix: "delete each of them by its number: " + p.Hint("pending", "--discard", "NUMBER"),
		}
	}
	if report.Problems > 0 {
		return &cli.Problem{
			Code: cli.ExitInternal, What: fmt.Sprintf("the journal %s has %s", p.Journal, cli.Count(int(report.Problems), "problem")),
			Fix: "copy the database before anything else opens it; what can still be read, " + p.Hint("log") + " and " + p.Hint("show", "ID") + " tell",
		}
	}
	return nil
}
