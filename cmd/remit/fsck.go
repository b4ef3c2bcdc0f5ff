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
	var p place
	var asJSON bool
	var kept string
	cmd := &cobra.Command{
		Use: "fsck", Short: "Check everything that can be seen of a journal, and trust nothing",
		Long: "Checks each record, the tree over them, transactions, claims and kept content, and changes no record. It ends with the\n" +
			"tree head. A head kept elsewhere and given with --head later shows that nothing before it was changed or cut off,\n" +
			"which nothing in the journal itself can show. Exit codes: 1 there are problems, each is listed.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.fsck(cmd.Context(), &p, kept, asJSON) },
	}
	placeFlags(cmd, &p)
	cmd.Flags().StringVar(&kept, "head", "", "`SIZE:ROOT`, a tree head that was kept elsewhere")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line: each problem, then the report")
	return cmd
}

func (a *app) fsck(ctx context.Context, p *place, kept string, asJSON bool) error {
	if err := p.find(a); err != nil {
		return err
	}
	o := revert.FsckOptions{Found: func(found revert.Problem) {
		if asJSON {
			newJSON(a.out).write(found)
		} else {
			a.paint().fsckProblem(a.out, found)
		}
	}}
	if kept != "" {
		var err error
		if o.Kept, err = journal.ParseHead(kept); err != nil {
			return &problem{code: exitUsage, what: "--head: " + err.Error(), fix: "give the head as an earlier remit fsck wrote it"}
		}
	}
	report, err := sqlite.Fsck(ctx, p.state, o)
	if err != nil && (report.Problems == 0 || !errors.Is(err, record.ErrDamaged)) {
		return err // it could not be looked at
	}
	if asJSON {
		newJSON(a.out).write(report)
	} else {
		a.paint().fsckReport(a.out, report)
	}
	if report.Problems > 0 {
		return &problem{
			code: exitInternal, what: fmt.Sprintf("the journal in %s has %s", p.state, count(int(report.Problems), "problem")),
			fix: "copy the folder before anything else opens it; what can still be read, remit log and remit show tell",
		}
	}
	return nil
}

func (p paint) fsckProblem(w io.Writer, found revert.Problem) {
	where := ""
	if found.Pos > 0 {
		where = fmt.Sprintf("entry %d: ", found.Pos)
	}
	_, _ = fmt.Fprintf(w, "%s %s%s\n", p.bad("✗"), where, printable(found.What))
}

func (p paint) fsckReport(w io.Writer, r sqlite.FsckReport) {
	_, _ = fmt.Fprintf(w, "%s looked at, of %s; content named %s\n", entries(r.Entries), count(int(r.Txns), "transaction"), count(int(r.Blobs), "time"))
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
