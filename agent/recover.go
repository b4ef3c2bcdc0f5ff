package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// Recovery is what Runtime.Recover came to.
type Recovery struct {
	revert.RecoveryReport
	// Reverted are the abandoned transactions that were taken back, each with
	// its report; see OnAbandoned.
	Reverted []revert.Report `json:"reverted,omitempty"`
}

// Recover settles the calls that dead processes left in flight, and then, with
// OnAbandoned(Revert), takes their open transactions back. It may be run at any
// time, also beside living processes, and may die at any point and be run again.
// Where something was left behind the error is ErrPartialRevert and the reports say
// what; the others were taken back.
func (rt *Runtime) Recover(ctx context.Context) (Recovery, error) {
	settled, err := rt.reverter.Recover(ctx)
	rec := Recovery{RecoveryReport: settled}
	if rt.abandon != RevertAbandoned {
		return rec, err
	}
	// Settling adopted some of them, so they count as this runtime's now; what is
	// listed as without an owner is what was found so.
	for _, txn := range settled.Abandoned {
		if context.Cause(ctx) != nil {
			return rec, errors.Join(err, context.Cause(ctx))
		}
		rep, done, back := rt.revertAbandoned(ctx, txn)
		if done {
			rec.Reverted = append(rec.Reverted, rep)
		}
		if back != nil {
			err = errors.Join(err, fmt.Errorf("abandoned transaction %s: %w", txn, back))
		}
	}
	return rec, err
}

// revertAbandoned takes one abandoned transaction back, unless somebody still waits to go
// on with it or was faster.
func (rt *Runtime) revertAbandoned(ctx context.Context, txn string) (rep revert.Report, done bool, err error) {
	if _, open := rt.live.get(txn); open {
		return rep, false, nil
	}
	t, err := revert.Load(ctx, rt.journal, txn)
	if err != nil || t.End != "" || t.Committing { // its owner had decided otherwise
		return rep, false, err
	}
	for _, c := range t.Calls {
		if c.Phase == revert.PhasePending {
			return rep, false, nil
		}
	}
	rep, err = rt.Revert(ctx, txn)
	if errors.Is(err, revert.ErrBusy) || errors.Is(err, journal.ErrNotOwner) {
		return rep, false, nil
	}
	return rep, err == nil || errors.Is(err, ErrPartialRevert), err
}
