package startup

import (
	"context"
	"slices"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/hookclient/netclient"
	"github.com/remit-dev/remit/revert/journal"
)

// EndPrompts lets the resident process of coding agents end the prompts of the
// workspace. An agent that was interrupted reports no end of its prompt, and
// the process would still hold it. It returns the transactions that it ended.
func EndPrompts(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal) (map[string]bool, error) {
	home, err := state.Home(a.Getenv)
	if err != nil {
		return nil, nil //nolint:nilerr // without a home there is no such process
	}
	dir, err := state.RealFolder(p.Folder())
	if err != nil {
		return nil, nil //nolint:nilerr // the journal of a workspace that is gone can be read
	}
	before, err := j.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	if err := netclient.Settle(home, dir); err != nil {
		return nil, &cli.Problem{Code: cli.ExitInternal, What: "the prompt that a coding agent works on could not be ended", Why: cli.PlainError(err), Fix: "quit the agent, then try again"}
	}
	after, err := j.Unfinished(ctx)
	ended := map[string]bool{}
	for _, o := range before {
		ended[o.Txn] = !slices.ContainsFunc(after, func(still journal.Ownership) bool { return still.Txn == o.Txn })
	}
	return ended, err
}
