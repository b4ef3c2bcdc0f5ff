package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
)

// worksOn reports whether a transaction reverts or redoes another one.
func worksOn(t *revert.Txn, id string) bool {
	return id != "" && (t.Undoes+t.Redoes == id || slices.Contains(t.AlsoReverts, id))
}

// writeInterrupted says that a revert or a redo of the shown transaction was
// interrupted.
func writeInterrupted(ctx context.Context, a *cli.App, rt *agent.Runtime, p *state.Workspace, id string) error {
	return state.Interrupted(ctx, rt, func(t *revert.Txn) (bool, error) {
		if !worksOn(t, id) {
			return false, nil
		}
		verb := "revert"
		if t.Redoes != "" {
			verb = "redo"
		}
		_, _ = fmt.Fprintf(a.Out, "the %s %s of %s was interrupted, so that its files can be as before or as after: %s\n", verb, t.ID, id, p.Hint("recover"))
		return true, nil
	})
}

// warnOfHalfApplied warns about a transaction whose process died during a call: files
// can be half changed. An unreadable journal does not stop the command here.
func warnOfHalfApplied(ctx context.Context, a *cli.App, rt *agent.Runtime, p *state.Workspace) {
	_ = state.Interrupted(ctx, rt, func(t *revert.Txn) (bool, error) {
		cut := t
		if of := t.Undoes + t.Redoes; of != "" {
			var err error
			if cut, err = rt.Load(ctx, of); err != nil {
				return false, err
			}
		}
		if len(cut.InFlight()) == 0 {
			return false, nil
		}
		_, _ = fmt.Fprintf(a.Err, "remit: transaction %s has no owner any more, and its files can be half changed: %s\n", t.ID, p.Hint("recover"))
		return true, nil
	})
}
