package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// PendingCommit is a transaction whose commit waits for approval.
type PendingCommit struct {
	Txn      *revert.Txn
	Decision revert.CommitDecision
	Alive    bool // the owner process of the transaction is running
}

// FindPendingCommits returns the transactions whose commit waits, oldest first.
// An unreadable transaction does not hide the others: its error is joined.
func FindPendingCommits(ctx context.Context, j journal.Journal) (out []PendingCommit, err error) {
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
		d, waits := t.WaitingCommit().Get()
		if !waits {
			continue
		}
		alive, err := j.Alive(ctx, o.Owner)
		out = append(out, PendingCommit{t, d, alive || err != nil})
	}
	slices.SortStableFunc(out, func(a, b PendingCommit) int { return a.Decision.At.Compare(b.Decision.At) })
	return out, errors.Join(damage...)
}
