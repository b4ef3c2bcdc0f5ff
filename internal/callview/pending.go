package callview

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// Pending is a call that waits for approval, with its transaction.
type Pending struct {
	Txn   *revert.Txn
	Call  *revert.Call
	Alive bool // the owner process of the transaction is running
}

// FindPending returns the pending calls, oldest first. An unreadable
// transaction does not hide the others: its error is joined.
func FindPending(ctx context.Context, j journal.Journal) (out []Pending, err error) {
	open, err := j.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	var damage []error
	for _, o := range open {
		t, err := revert.Load(ctx, j, o.Txn)
		if err != nil {
			damage = append(damage, fmt.Errorf("transaction %s: %w", o.Txn, err))
			continue
		}
		if t.End != "" || t.Aborting {
			continue
		}
		alive, err := j.Alive(ctx, o.Owner)
		for _, c := range t.Calls {
			if c.Waits() && c.Asked != nil {
				out = append(out, Pending{t, c, alive || err != nil})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Pending) int { return a.Call.Began.Compare(b.Call.Began) })
	return out, errors.Join(damage...)
}
