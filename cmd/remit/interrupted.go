package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// worksOn reports whether a transaction reverts or redoes another one.
func worksOn(t *revert.Txn, id string) bool {
	return id != "" && (t.Undoes+t.Redoes == id || slices.Contains(t.AlsoReverts, id))
}

// writeInterrupted says that a revert or a redo of the shown transaction was
// interrupted.
func writeInterrupted(ctx context.Context, a *cli.App, rt *agent.Runtime, p *workspaceState, id string) error {
	return interrupted(ctx, rt, func(t *revert.Txn) (bool, error) {
		if !worksOn(t, id) {
			return false, nil
		}
		verb := "revert"
		if t.Redoes != "" {
			verb = "redo"
		}
		_, _ = fmt.Fprintf(a.Out, "the %s %s of %s was interrupted, so that its files can be as before or as after: %s\n", verb, t.ID, id, p.hint("recover"))
		return true, nil
	})
}

// interrupted calls fn with each abandoned transaction, oldest first, until fn
// returns true.
func interrupted(ctx context.Context, rt *agent.Runtime, fn func(t *revert.Txn) (stop bool, err error)) error {
	open, err := rt.Journal().Unfinished(ctx)
	if err != nil {
		return err
	}
	for _, o := range open {
		alive, err := rt.Journal().Alive(ctx, o.Owner)
		if err != nil {
			return err
		}
		if alive {
			continue
		}
		t, err := rt.Load(ctx, o.Txn)
		if err != nil {
			return err
		}
		if stop, err := fn(t); stop || err != nil {
			return err
		}
	}
	return nil
}

// ownerGone reports whether a transaction is open and its owner process has
// ended.
func ownerGone(ctx context.Context, j journal.Journal, id string) bool {
	t, err := revert.Load(ctx, j, id)
	if err != nil || t.End != "" {
		return false
	}
	alive, err := j.Alive(ctx, t.Owner)
	return err == nil && !alive
}

// warnOfHalfApplied warns about a transaction whose process died during a call: files
// can be half changed. An unreadable journal does not stop the command here.
func warnOfHalfApplied(ctx context.Context, a *cli.App, rt *agent.Runtime, p *workspaceState) {
	_ = interrupted(ctx, rt, func(t *revert.Txn) (bool, error) {
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
		_, _ = fmt.Fprintf(a.Err, "remit: transaction %s has no owner any more, and its files can be half changed: %s\n", t.ID, p.hint("recover"))
		return true, nil
	})
}
