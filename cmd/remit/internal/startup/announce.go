package startup

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Announce tells the other nodes of a shared journal which roots this node has,
// and which approvals count for its calls. A command calls it once its session
// is open: a refused start announces nothing. A journal of one machine needs no
// announcement.
func Announce(ctx context.Context, a *cli.App, f *Flags, j journal.Journal) error {
	n, ok := j.(state.Node)
	if !ok {
		return nil
	}
	roots, err := rootsOf(a, f.rootWords(), n.NodeID())
	if err != nil {
		return err
	}
	if err := approval.Announce(ctx, &f.Workspace, j); err != nil {
		return err
	}
	return n.SetRoots(ctx, roots)
}

// rootsOf returns the roots, as NAME=DIR, in the form of a record.
func rootsOf(a *cli.App, words []string, node string) (roots []record.Root, err error) {
	for _, w := range words {
		name, dir, err := state.ParseRoot(w)
		if err != nil {
			return nil, err
		}
		open, err := host.OpenRoot(a.Host, dir)
		if err != nil {
			return nil, err
		}
		id, err := canon.Marshal(open.Identity())
		if err = errors.Join(err, open.Close()); err != nil {
			return nil, err
		}
		roots = append(roots, record.Root{Name: name, Path: dir, Identity: id, Node: node})
	}
	return roots, nil
}
