package approval

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// Lines of a difference that remit pending shows: in a list, and for one call.
const (
	ListedLines = 40
	ShownLines  = 4000
)

// PendingCalls returns the pending calls of a journal, none if there is no journal.
func PendingCalls(ctx context.Context, a *cli.App, p *state.Workspace) (calls []*revert.Call, err error) {
	if !p.HasJournal() {
		return nil, nil
	}
	j, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return PendingOn(ctx, j)
}

// PendingOn returns the pending calls of an open journal.
func PendingOn(ctx context.Context, j journal.Journal) (calls []*revert.Call, err error) {
	all, err := callview.FindPending(ctx, j)
	for _, w := range all {
		calls = append(calls, w.Call)
	}
	return calls, err
}
