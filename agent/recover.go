package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// Recovery is the result of Runtime.Recover.
type Recovery struct {
	revert.RecoveryReport
	// Reverted are the reports of the abandoned transactions that were
	// reverted; see OnAbandoned.
	Reverted []revert.Report `json:"reverted,omitempty"`
}

// Recover settles the calls that dead processes left in flight. With
// OnAbandoned(RevertAbandoned) it then reverts their open transactions. It can
// run at any time, also beside living processes, and can be repeated after a
// crash at any point. If a revert was not complete, the error is
// ErrPartialRevert, and the reports list what remains. The other transactions
// are reverted.
func (rt *Runtime) Recover(ctx context.Context) (Recovery, error) {
	settled, err := rt.services.Reverter.Recover(ctx)
	rec := Recovery{RecoveryReport: settled}
	if rt.abandon != RevertAbandoned {
		return rec, err
	}
	// Settling adopted some transactions, so they count as this runtime's now.
	// The list names those that were abandoned before.
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

// revertAbandoned reverts one abandoned transaction, unless a call waits for an
// approval or another process was faster.
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
	rep, err = rt.Revert(ctx, txn, revert.Options{})
	if errors.Is(err, revert.ErrBusy) || errors.Is(err, journal.ErrNotOwner) {
		return rep, false, nil
	}
	return rep, err == nil || errors.Is(err, ErrPartialRevert), err
}
