package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
)

// Lines of a difference that remit pending shows: in a list, and for one call.
const (
	ListedLines = 40
	ShownLines  = 4000
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

// PendingCalls returns the pending calls of a journal, none if there is no journal.
func PendingCalls(ctx context.Context, a *cli.App, p *state.Workspace) (calls []*revert.Call, err error) {
	if !sqlite.Exists(p.StateDir) {
		return nil, nil
	}
	j, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	all, err := FindPending(ctx, j)
	for _, w := range all {
		calls = append(calls, w.Call)
	}
	return calls, err
}
