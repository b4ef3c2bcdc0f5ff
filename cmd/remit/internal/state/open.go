package state

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
)

// Open opens the journal for writing. It creates the journal if there is none.
func (p *Workspace) Open(ctx context.Context) (journal.Journal, error) {
	if info, err := os.Stat(p.StateDir); err == nil && !info.IsDir() {
		return nil, &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the state %q is not a folder", p.StateDir), Fix: "name a folder with --state"}
	}
	if p.IsShared() {
		return p.openShared(ctx)
	}
	j, err := sqlite.Open(ctx, p.StateDir)
	if err != nil {
		return nil, err
	}
	return j, nil
}

// Read opens the journal for a command that reads it. If the workspace was
// moved, that is the journal of its former path. If the workspace has no
// journal, Read returns an empty one and creates no folder. It returns an error
// if the named state folder has no journal.
func (p *Workspace) Read(ctx context.Context, a *cli.App) (journal.Journal, error) {
	named := p.StateDir != ""
	if err := p.Find(a); err != nil {
		return nil, err
	}
	switch {
	case p.IsShared():
		return p.readShared(ctx)
	case sqlite.Exists(p.StateDir):
		j, err := p.Open(ctx)
		if err != nil || !named || p.Dir == "" || NamesWorkspace(p.Moved) {
			return j, err
		}
		if folder, err := RealFolder(p.Dir); err == nil { // a person can read the journal of a workspace that no longer exists
			var other *cli.Problem // the command reports an unreadable journal
			if errors.As(p.CheckOwner(ctx, a, j, folder), &other) {
				return nil, errors.Join(other, j.Close())
			}
		}
		return j, nil
	case named:
		return nil, &cli.Problem{
			Code: cli.ExitUsage, What: fmt.Sprintf("there is no journal in %q", p.StateDir),
			Fix: "check --state: it is the folder that remit run was given; without it, the journal of the workspace is read",
		}
	}
	if !p.ForCompletion {
		if err := p.noJournal(ctx, a, p.MustExist); err != nil {
			return nil, err
		}
		if sqlite.Exists(p.StateDir) { // that of the folder's former path
			return p.Open(ctx)
		}
	}
	return journal.Memory(), nil
}
