package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
)

func (a *app) recoverCommand() *cobra.Command {
	var p place
	var asJSON bool
	cmd := &cobra.Command{
		Use: "recover", Short: "Find out what became of calls whose process died",
		Long: "Settles the calls that dead processes left in flight, and nothing else: it reverts no transaction. It may be run\n" +
			"at any time, also beside a live run. Exit codes: 7 a call's outcome is unknown, or could not be\n" +
			"found out here; 6 one could be taken back in part only.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.recover(cmd.Context(), &p, asJSON) },
	}
	placeFlags(cmd, &p)
	movedFlag(cmd, &p)
	databaseFlag(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

func (a *app) recover(ctx context.Context, p *place, asJSON bool) error {
	return a.withRuntime(ctx, p, func(rt *agent.Runtime) error {
		rec, err := rt.Recover(ctx)
		for _, s := range rec.Settled {
			a.code = worst(a.code, settledCode(s))
		}
		if len(rec.Failed) > 0 { // nobody knows yet what became of their calls
			a.code = worst(a.code, exitUnknown)
		}
		switch {
		case asJSON:
			rec.Settled, rec.OwnerGone = listed(rec.Settled), listed(rec.OwnerGone)
			newJSON(a.out).write(rec)
		default:
			a.paint().recovery(a.out, rec.Recovery, p)
		}
		return err
	})
}

func settledCode(s revert.Settled) exitCode {
	switch {
	case s.As == revert.PhaseUnknown:
		return exitUnknown
	case revert.TakenBack(s.Items) != "all":
		return exitPartial
	default:
		return exitOK
	}
}

func (p paint) recovery(w io.Writer, rec revert.Recovery, where *place) {
	for _, s := range rec.Settled {
		mark := p.good("✓")
		if settledCode(s) != exitOK {
			mark = p.bad("?")
		}
		_, _ = fmt.Fprintf(w, "%s %s %-12s %s: %s\n", mark, p.faint(s.Call), printable(s.Tool), s.As, printable(s.Why))
		p.leftovers(w, s.Items)
		if s.As == revert.PhaseUnknown {
			p.details(w, &problem{id: where.shown(s.Call)})
		}
	}
	for _, f := range rec.Failed {
		_, _ = fmt.Fprintf(w, "%s %s not settled\n", p.bad("✗"), p.faint(f.Txn))
		p.details(w, &problem{why: f.Why, id: where.shown(f.Txn)})
	}
	_, _ = fmt.Fprintf(w, "%s settled\n", count(len(rec.Settled), "call"))
	if rec.Alive > 0 {
		_, _ = fmt.Fprintf(w, "left alone: %s of living processes\n", count(rec.Alive, "transaction"))
	}
	for _, id := range rec.OwnerGone {
		_, _ = fmt.Fprintf(w, "%s %s\n", id, p.state(revert.Open, true))
		if slices.Contains(rec.Committing, id) {
			_, _ = fmt.Fprintln(w, p.faint("its commit had begun; go on with it: "+where.hint("resume", id, "--at-end", "commit")))
		}
		_, _ = fmt.Fprintln(w, p.faint("take it back: "+where.hint("revert", id)))
	}
}
