package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
)

// RecoverCommand returns remit recover.
func RecoverCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	var asJSON bool
	cmd := &cobra.Command{
		Use: "recover", Short: "Determine the outcomes of calls whose process died, and finish its reverts",
		Long: "Determines the outcomes of calls that killed processes left in flight. It reverts an unfinished call that acts through\n" +
			"handles or in the sandbox. If a revert or a redo was killed, it finishes the calls that this had begun, and closes it\n" +
			"if nothing else is left to do. It closes transactions that have nothing to revert. It begins no revert and no redo:\n" +
			"for what stays open, it prints the commands. The command can run at any time, also while a run is live. On a node of a\n" +
			"shared journal, it also does the reverts and redos that other nodes asked of this one, and prints their reports.\n\n" +
			"Exit codes: 6 a call could be reverted only in part; 7 the outcome of a call is unknown, or could not be determined\n" +
			"here.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRecover(cmd.Context(), a, &p, asJSON) },
	}
	state.AddFlags(cmd, &p)
	state.AddRootFlag(cmd, &p)
	state.AddDatabaseFlag(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

func runRecover(ctx context.Context, a *cli.App, p *state.Workspace, asJSON bool) error {
	return startup.WithRuntime(ctx, a, p, func(rt *agent.Runtime) error {
		// First: recovery adopts an interrupted revert, and then only this runtime could continue it.
		asked, unasked := startup.Asked{App: a, Place: *p, Journal: rt.Journal()}.Do(ctx)
		rec, err := rt.Recover(ctx)
		closed, failed := closeEmpty(ctx, rt, &rec.RecoveryReport)
		err = errors.Join(err, failed, unasked)
		for _, q := range asked {
			if q.Report == nil || !q.Report.Complete() {
				a.ExitWith(cli.ExitPartial)
			}
		}
		for _, s := range rec.Settled {
			a.ExitWith(settledCode(s))
		}
		if len(rec.Failed) > 0 { // the outcomes of their calls are unknown
			a.ExitWith(cli.ExitUnknown)
		}
		switch {
		case asJSON:
			rec.Settled, rec.Abandoned = cli.Listed(rec.Settled), cli.Listed(rec.Abandoned)
			a.WriteJSON(recovered{rec, closed, asked})
		default:
			writeRecovery(a.Style(), a.Out, rec.RecoveryReport, p)
			for _, id := range closed {
				_, _ = fmt.Fprintf(a.Out, "%s closed: it had nothing to revert\n", id)
			}
			for _, rep := range rec.Reverted {
				_, _ = fmt.Fprintf(a.Out, "%s %s: its commit was denied, and recover finished its revert\n", rep.Txn, render.State(a.Style(), rep.State, false))
			}
			err = errors.Join(err, writeOpen(ctx, a, rt, rec.RecoveryReport, p))
			writeDone(a, asked)
		}
		return err
	})
}

// recovered is the JSON form of a recovery.
type recovered struct {
	agent.Recovery
	Closed []string         `json:"closed,omitempty"` // transactions without effects, which recovery closed
	Asked  []revert.Request `json:"asked,omitempty"`  // reverts and redos that other nodes asked for, with their reports
}

// writeDone writes the reports of what other nodes asked for.
func writeDone(a *cli.App, done []revert.Request) {
	for _, q := range done {
		_, _ = fmt.Fprintf(a.Out, "the %s of %s, which %s asked for on node %s:\n", q.Verb(), cli.Printable(q.Target), cli.Printable(cmp.Or(q.By, "a person")), cli.Printable(q.From))
		if q.Report == nil {
			_, _ = fmt.Fprintln(a.Out, a.Style().Bad("✗")+" nothing was done")
			a.Style().Details(a.Out, &cli.Problem{Why: q.Why})
			continue
		}
		writeReport(a.Style(), a.Out, *q.Report, map[bool]revertOp{false: reverting, true: redoing}[q.Redo], q.Target)
	}
}

// closeEmpty ends abandoned transactions without effects, held calls and
// pending calls. It removes them from the report and returns their IDs.
func closeEmpty(ctx context.Context, rt *agent.Runtime, rec *revert.RecoveryReport) (closed []string, err error) {
	var open []string
	for _, id := range rec.Abandoned {
		t, failed := rt.Load(ctx, id)
		empty := failed == nil && t.Reverts+t.Redoes == "" && !t.Committing && len(t.Named) == 0 && len(t.EffectiveCalls())+len(t.InFlight())+len(t.HeldCalls()) == 0 &&
			!slices.ContainsFunc(t.Calls, func(c *revert.Call) bool { return c.Phase == revert.PhasePending })
		if empty {
			_, failed = rt.Revert(ctx, id, revert.Options{})
		}
		if empty && failed == nil {
			closed = append(closed, id)
		} else {
			open, err = append(open, id), errors.Join(err, failed)
		}
	}
	rec.Abandoned = open
	return closed, err
}

func settledCode(s revert.RecoveredCall) cli.ExitCode {
	switch {
	case s.Outcome == revert.PhaseUnknown:
		return cli.ExitUnknown
	case revert.RevertSummary(s.Items) != "all":
		return cli.ExitPartial
	default:
		return cli.ExitOK
	}
}

func writeRecovery(p cli.Style, w io.Writer, rec revert.RecoveryReport, where *state.Workspace) {
	for _, s := range rec.Settled {
		mark := p.Good("✓")
		if settledCode(s) != cli.ExitOK {
			mark = p.Bad("?")
		}
		_, _ = fmt.Fprintf(w, "%s %s %-12s %s: %s\n", mark, p.Faint(s.Call), cli.Printable(s.Tool), s.Outcome, cli.Printable(s.Why))
		render.Remaining(p, w, s.Items)
		if s.Outcome == revert.PhaseUnknown {
			p.Details(w, &cli.Problem{ID: where.ShowArguments(s.Call)})
		}
	}
	for _, f := range rec.Failed {
		_, _ = fmt.Fprintf(w, "%s %s not resolved\n", p.Bad("✗"), p.Faint(f.Txn))
		p.Details(w, &cli.Problem{Why: f.Why, ID: where.ShowArguments(f.Txn)})
	}
	_, _ = fmt.Fprintf(w, "%s resolved\n", cli.Count(len(rec.Settled), "call"))
	if rec.Alive > 0 {
		_, _ = fmt.Fprintf(w, "unchanged: %s of living processes\n", cli.Count(rec.Alive, "transaction"))
	}
	for _, f := range rec.Finished {
		verb, rest, back := "revert", where.Hint("revert", f.Of), where.Hint("redo", f.Txn)
		if f.Redoes {
			verb, rest, back = "redo", where.Hint("redo", f.Of), where.Hint("revert", f.Of)
		}
		_, _ = fmt.Fprintf(w, "%s closed: the %s of %s was interrupted, and recover finished it; %s is %s\n", f.Txn, verb, f.Of, f.Of, render.State(p, f.State, false))
		if f.State == revert.TxnRevertedPartial {
			_, _ = fmt.Fprintln(w, p.Faint("try again what did not change: "+rest))
		}
		_, _ = fmt.Fprintln(w, p.Faint(map[bool]string{true: "revert it again: ", false: "redo these changes: "}[f.Redoes]+back))
	}
}

// writeOpen writes the transactions that stay open, with the commands that end
// each.
func writeOpen(ctx context.Context, a *cli.App, rt *agent.Runtime, rec revert.RecoveryReport, where *state.Workspace) error {
	p, w := a.Style(), a.Out
	for _, id := range rec.Abandoned {
		t, err := rt.Load(ctx, id)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(w, "%s %s\n", id, render.State(p, revert.TxnOpen, true))
		of := t.Reverts + t.Redoes
		switch {
		case t.Redoes != "":
			_, _ = fmt.Fprintf(w, "it is a redo of %s that was interrupted\n", of)
			_, _ = fmt.Fprintln(w, p.Faint("redo all of it: "+where.Hint("redo", of)))
			_, _ = fmt.Fprintln(w, p.Faint("revert all of it: "+where.Hint("revert", of)))
			continue
		case t.Reverts != "":
			_, _ = fmt.Fprintf(w, "it is a revert of %s that was interrupted\n", of)
			_, _ = fmt.Fprintln(w, p.Faint("revert all of it: "+where.Hint("revert", of)))
			_, _ = fmt.Fprintln(w, p.Faint("redo all of it: "+where.Hint("redo", of)))
			continue
		case t.Committing:
			_, _ = fmt.Fprintln(w, p.Faint("its commit had begun; resume it: "+where.Hint("resume", id, "--at-end", "commit")))
		case t.WaitingCommit().IsPresent():
			if err := writeCommitHint(p, w, t, where); err != nil {
				return err
			}
		case waitingCall(t) != "":
			_, _ = fmt.Fprintln(w, p.Faint("a call of it waits for approval; answer it: "+where.Hint("approve", waitingCall(t))))
		case !t.Aborting:
			_, _ = fmt.Fprintln(w, p.Faint("keep it: "+where.Hint("resume", id, "--at-end", "commit")))
		}
		_, _ = fmt.Fprintln(w, p.Faint("revert it: "+where.Hint("revert", id)))
	}
	return nil
}

// writeCommitHint writes the commands for a commit that waits or was answered.
func writeCommitHint(p cli.Style, w io.Writer, t *revert.Txn, where *state.Workspace) error {
	c, err := callview.CommitOf(t)
	if err != nil {
		return err
	}
	writeCommit(p, w, c)
	switch c.State {
	case "approved":
		_, _ = fmt.Fprintln(w, p.Faint("commit it with the --policy, --database and --services of its run: "+where.Hint("resume", t.ID, "--at-end", "commit")))
	case "waits":
		_, _ = fmt.Fprintln(w, p.Faint("look at it: "+where.Hint("pending", t.ID)))
	}
	return nil
}

// waitingCall returns the ID of a call of a transaction that waits for approval,
// or the empty text.
func waitingCall(t *revert.Txn) string {
	for _, c := range t.Calls {
		if c.Phase == revert.PhasePending {
			return c.Ref.Call
		}
	}
	return ""
}
