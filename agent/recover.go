package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// Recovery is the result of Runtime.Recover.
type Recovery struct {
	revert.RecoveryReport
	// Reverted are the reports of the abandoned transactions that were
	// reverted: those whose commit was denied, and with OnAbandoned all.
	Reverted []revert.Report `json:"reverted,omitempty"`
}

// Recover settles the calls that dead processes left in flight. It completes the
// revert of a transaction whose commit was denied. With
// OnAbandoned(RevertAbandoned) it then reverts the other open transactions. It can
// run at any time, also beside living processes, and can be repeated after a
// crash at any point. If a revert was not complete, the error is
// ErrPartialRevert, and the reports list what remains. The other transactions
// are reverted.
func (rt *Runtime) Recover(ctx context.Context) (Recovery, error) {
	settled, err := rt.services.Reverter.Recover(ctx)
	rec := Recovery{RecoveryReport: settled}
	// Settling adopted some transactions, so they count as this runtime's now.
	// The list names those that were abandoned before.
	rec.Abandoned = slices.Clone(settled.Abandoned)
	for _, txn := range settled.Abandoned {
		if context.Cause(ctx) != nil {
			return rec, errors.Join(err, context.Cause(ctx))
		}
		rep, done, denied, back := rt.revertAbandoned(ctx, txn)
		if done {
			rec.Reverted = append(rec.Reverted, rep)
		}
		if done && denied { // it has ended as its owner had begun to end it
			rec.Abandoned = slices.DeleteFunc(rec.Abandoned, func(id string) bool { return id == txn })
		}
		if back != nil {
			err = errors.Join(err, fmt.Errorf("abandoned transaction %s: %w", txn, back))
		}
	}
	return rec, err
}

// revertAbandoned reverts one abandoned transaction: one whose commit was denied,
// or with OnAbandoned(RevertAbandoned) any one in which neither a call nor the
// commit waits for an approval. It does nothing if another process was faster.
func (rt *Runtime) revertAbandoned(ctx context.Context, txn string) (rep revert.Report, done, denied bool, err error) {
	if _, open := rt.live.get(txn); open {
		return rep, false, false, nil
	}
	t, err := revert.Load(ctx, rt.journal, txn)
	if err != nil || t.End != "" || t.Committing { // its owner had decided otherwise
		return rep, false, false, err
	}
	if !t.Denied && (rt.abandon != RevertAbandoned || t.Waits()) {
		return rep, false, false, nil
	}
	by := ""
	if d := t.Commits; t.Denied && len(d) > 0 && d[len(d)-1].Decided != nil {
		by = deniedBy(d[len(d)-1].Decided)
	}
	rep, err = rt.Revert(ctx, txn, revert.Options{By: by})
	if errors.Is(err, revert.ErrBusy) || errors.Is(err, journal.ErrNotOwner) {
		return rep, false, false, nil
	}
	return rep, err == nil || errors.Is(err, ErrPartialRevert), t.Denied, err
}
