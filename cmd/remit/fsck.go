package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

func (a *app) fsckCommand() *cobra.Command {
	var p workspaceState
	var asJSON, accept bool
	var kept string
	cmd := &cobra.Command{
		Use: "fsck", Short: "Check everything that can be seen of a journal, and trust nothing",
		Long: "Checks each record, the tree over them, transactions, claims and kept content, and changes no record. It ends with the\n" +
			"tree head. A head kept elsewhere and given with --head later shows that nothing before it was changed or cut off,\n" +
			"which nothing in the journal itself can show. Where entries are missing that were promised, or journal.head is, every\n" +
			"other command refuses; --accept-head goes on with what is there, and writes down that you said so.\n" +
			"Exit codes: 1 there are problems, each is listed.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if accept {
				return a.acceptHead(cmd.Context(), &p, asJSON)
			}
			return a.fsck(cmd.Context(), &p, kept, asJSON)
		},
	}
	placeFlags(cmd, &p)
	cmd.Flags().StringVar(&kept, "head", "", "`SIZE:ROOT`, a tree head that was kept elsewhere")
	cmd.Flags().BoolVar(&accept, "accept-head", false, "go on with an incomplete journal, and write down who said so")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line: each problem, then the report")
	return cmd
}

func (a *app) fsck(ctx context.Context, p *workspaceState, kept string, asJSON bool) error {
	if err := p.find(a); err != nil {
		return err
	}
	o := revert.FsckOptions{Found: func(found revert.Problem) {
		if asJSON {
			a.writeJSON(found)
		} else {
			a.paint().fsckProblem(a.out, found)
		}
	}}
	if kept != "" {
		var err error
		if o.Kept, err = journal.ParseHead(kept); err != nil {
			return &problem{code: exitUsage, what: "--head: " + err.Error(), fix: "give the head as an earlier check wrote it"}
		}
	}
	report, err := sqlite.Fsck(ctx, p.state, o)
	if err != nil && (report.Problems == 0 || !errors.Is(err, record.ErrDamaged)) {
		return err // the check could not run
	}
	if asJSON {
		a.writeJSON(report)
	} else {
		a.paint().fsckReport(a.out, report)
	}
	if report.Problems > 0 {
		fix := "copy the folder before anything else opens it; what can still be read, " + p.hint("log") + " and " + p.hint("show", "ID") + " tell"
		if report.Incomplete {
			fix = putBack(p)
		}
		return &problem{
			code: exitInternal, what: fmt.Sprintf("the journal in %s has %s", p.state, count(int(report.Problems), "problem")), fix: fix,
		}
	}
	return nil
}

// acceptHead continues with an incomplete journal.
func (a *app) acceptHead(ctx context.Context, p *workspaceState, asJSON bool) error {
	if err := p.find(a); err != nil {
		return err
	}
	who, err := a.person()
	if err != nil {
		return err
	}
	if !sqlite.Exists(p.state) {
		return fmt.Errorf("journal in %s: %w", p.state, journal.ErrNotFound)
	}
	what, err := sqlite.Accept(ctx, p.state, who)
	if err != nil {
		return err
	}
	if asJSON {
		a.writeJSON(what)
		return nil
	}
	missing := "how many entries are missing is not known"
	if what.Promised != "" {
		missing = entries(what.Missing) + " missing"
	}
	_, _ = fmt.Fprintf(a.out, "accepted by %s: %s\n", printable(who), missing)
	_, _ = fmt.Fprintf(a.out, "head %s\n", what.Found)
	return nil
}

func (p textStyle) fsckProblem(w io.Writer, found revert.Problem) {
	where := ""
	if found.Pos > 0 {
		where = fmt.Sprintf("entry %d: ", found.Pos)
	}
	_, _ = fmt.Fprintf(w, "%s %s%s\n", p.bad("✗"), where, printable(found.What))
}

func (p textStyle) fsckReport(w io.Writer, r sqlite.FsckReport) {
	_, _ = fmt.Fprintf(w, "%s looked at, of %s; content named %s\n", entries(r.Entries), count(int(r.Txns), "transaction"), count(int(r.Blobs), "time"))
	if r.Missing > 0 {
		_, _ = fmt.Fprintln(w, p.bad("missing: "+entries(r.Missing)))
	}
	if r.Erased > 0 {
		_, _ = fmt.Fprintln(w, p.faint("erased, and accounted for: "+entries(r.Erased)))
	}
	if r.Unnamed+r.Leftover > 0 {
		_, _ = fmt.Fprintln(w, p.faint(fmt.Sprintf("left by crashes, which is no problem: %s that nothing names, %s", count(int(r.Unnamed), "blob"), count(int(r.Leftover), "unfinished file"))))
	}
	if r.Alive > 0 {
		_, _ = fmt.Fprintln(w, p.faint(fmt.Sprintf("in use by %s: its write-ahead log was not checked", count(r.Alive, "living opening"))))
	}
	if r.Head.Root != "" {
		_, _ = fmt.Fprintf(w, "head %s\n", r.Head)
	}
}

func entries(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}
