package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// revertOp is an operation on a transaction: revert, preview or redo.
type revertOp int

const (
	reverting revertOp = iota
	previewing
	redoing
)

// verb returns the name of the command.
func (w revertOp) verb() string {
	if w == redoing {
		return "redo"
	}
	return "revert"
}

// folderProblem returns the problem of a revert or a redo that needs other
// folders, with the command that names them.
func folderProblem(p *state.Workspace, a *cli.App, err error, way revertOp, id string) error {
	var lost *agent.RootError
	var away *revert.ElsewhereError
	what := "nothing was reverted"
	switch way {
	case redoing:
		what = "nothing was redone"
	case previewing:
		what = "nothing can be previewed"
	default:
	}
	var node *agent.NodeError
	switch {
	case errors.As(err, &node):
		return &cli.Problem{Code: cli.ExitUsage, What: what, Why: node.Error(), Fix: "run the command on that node; list the nodes: " + p.Hint("nodes")}
	case errors.As(err, &lost) && lost.State.Path != "":
		return &cli.Problem{Code: cli.ExitUsage, What: what, Why: lost.Error(), Fix: eitherFolderHint(p, a, lost.Roots, way, id)}
	case errors.As(err, &lost):
		again := *p
		for _, r := range lost.Roots {
			dir := "DIR"
			if here, err := state.RealFolder(p.Folder()); err == nil && (state.IsFolder(a, here, r) || here == r.Path) {
				dir = here // the workspace was moved or restored
			}
			again.Moved = append(slices.Clip(again.Moved), r.Name+"="+dir)
		}
		return &cli.Problem{Code: cli.ExitUsage, What: what, Why: lost.Error(), Fix: "say where it is now, also a copy or a restored backup: " + again.Hint(way.verb(), id)}
	case errors.As(err, &away) && len(away.Roots) > 0:
		again := *p
		again.Moved = slices.DeleteFunc(slices.Clone(p.Moved), func(m string) bool {
			return slices.ContainsFunc(away.Roots, func(r record.Root) bool { return strings.HasPrefix(m, r.Name+"=") })
		})
		for _, r := range away.Roots {
			again.Moved = append(again.Moved, r.Name+"="+r.Path)
		}
		return &cli.Problem{Code: cli.ExitUsage, What: what, Why: away.Error(), Fix: "work there: " + again.Hint(way.verb(), id)}
	case errors.As(err, &away):
		again := *p
		again.Moved = nil
		return &cli.Problem{Code: cli.ExitUsage, What: what, Why: away.Error(), Fix: "leave --root out: " + again.Hint(way.verb(), id)}
	}
	return err
}

// eitherFolderHint returns the commands that name the recorded folders, if they
// exist, and copies of them.
func eitherFolderHint(p *state.Workspace, a *cli.App, roots []record.Root, way revertOp, id string) string {
	was, copied, there := *p, *p, true
	for _, r := range roots {
		there = there && state.IsFolder(a, r.Path, r)
		was.Moved = append(slices.Clip(was.Moved), r.Name+"="+r.Path)
		dir := "DIR"
		if here, err := state.RealFolder("."); err == nil && r.Name == state.WorkspaceRoot && here != r.Path {
			dir = here
		}
		copied.Moved = append(slices.Clip(copied.Moved), r.Name+"="+dir)
	}
	fix := "in a copy: " + copied.Hint(way.verb(), id)
	if there {
		fix = "in the recorded folder: " + was.Hint(way.verb(), id) + "; " + fix
	}
	return fix
}

// writeFolders writes the folders that --root names, and a workspace that is
// not the current folder.
func writeFolders(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal, rep revert.Report) {
	for _, r := range rep.Named {
		_, _ = fmt.Fprintf(a.Out, "root %s: %s, as --root says; the journal has %s\n", cli.Printable(r.Root), cli.Printable(r.Path), cli.Printable(r.Was))
	}
	if rep.Txn == "" {
		return
	}
	if folder, err := p.Elsewhere(ctx, a, j, rep.Txn); err == nil && folder != "" {
		_, _ = fmt.Fprintf(a.Out, "in the workspace %s\n", cli.Printable(folder))
	}
}
