package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// AddRootFlag adds the flag that names folders which are not where a record says.
func AddRootFlag(cmd *cobra.Command, p *Workspace) {
	cmd.Flags().StringArrayVar(&p.Moved, "root", nil, "where the folder of a root is now, as `NAME=DIR`: if it was moved, or DIR is a copy or a restored backup of it")
	AddServiceFlags(cmd, &p.Services)
}

// NamedRoots are the roots that a command line names, as NAME=DIR: by --root, and the
// workspace where --root does not name it.
func (p *Workspace) NamedRoots() []string {
	if p.Dir != "" && !NamesWorkspace(p.Moved) {
		return append([]string{WorkspaceRoot + "=" + p.Dir}, p.Moved...)
	}
	return p.Moved
}

// NamedRootOptions are the roots that a command line names beside those of the record. What
// --root names is the person's word; --workspace has to be the recorded folder. Folders are
// those that calls may have changed, where that is known.
func (p *Workspace) NamedRootOptions(a *cli.App, folders ...string) (opts []agent.Option, err error) {
	for _, r := range p.NamedRoots() {
		name, dir, err := ParseRoot(r)
		if err != nil {
			return nil, err
		}
		root := agent.Root
		if slices.Contains(p.Moved, r) {
			root = agent.MovedRoot
		}
		opts = append(opts, root(name, dir))
	}
	more, err := p.Services.Options(a, folders)
	return append(opts, more...), err
}

// ParseRoot reads NAME=DIR.
func ParseRoot(text string) (name, dir string, err error) {
	name, dir, ok := strings.Cut(text, "=")
	if !ok || name == "" || dir == "" {
		return "", "", &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--root %q names no folder", text), Fix: "write --root NAME=DIR"}
	}
	dir, err = RealFolder(dir)
	return name, dir, err
}

// NamesWorkspace reports whether --root says which folder the workspace is. That is the
// person's word, also where the journal has another folder.
func NamesWorkspace(roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return strings.HasPrefix(r, WorkspaceRoot+"=") })
}

// WorkspaceRoot is the name of the root that --workspace names.
const WorkspaceRoot = "workspace"

// RecordedRoots are those that calls of what was left may have changed, as NAME=DIR: the roots of the
// session that a call or a transaction belongs to, and where the command line says that they
// are by now. There are none of an id that nothing has.
func (p *Workspace) RecordedRoots(ctx context.Context, j journal.Journal, id string) (roots []string, err error) {
	t, _, err := revert.LoadCall(ctx, j, id)
	if errors.Is(err, journal.ErrNotFound) {
		t, err = revert.Load(ctx, j, id)
	}
	switch {
	case errors.Is(err, journal.ErrNotFound):
	case err != nil:
		return nil, err
	default:
		who, err := PrincipalOf(ctx, j, t.Session)
		if err != nil {
			return nil, err
		}
		roots = who.roots
	}
	for _, r := range p.NamedRoots() {
		name, dir, err := ParseRoot(r)
		if err != nil {
			return nil, err
		}
		roots = append(roots, name+"="+dir)
	}
	return roots, nil
}

// FoldersOf are the folders of NAME=DIR.
func FoldersOf(roots []string) (folders []string) {
	for _, r := range roots {
		_, dir, _ := strings.Cut(r, "=")
		folders = append(folders, dir)
	}
	return folders
}

// RootFolders are the folders of a session's roots: as recorded, but for those that the command line names.
func (p *Workspace) RootFolders(ctx context.Context, j journal.Journal, session string) (map[string]string, error) {
	out := map[string]string{}
	body, err := sessionRecord(ctx, j, session)
	if err != nil {
		return nil, err
	}
	if body != nil {
		for _, r := range body.Roots {
			out[r.Name] = r.Path
		}
	}
	for _, r := range p.Moved {
		name, dir, err := ParseRoot(r)
		if err != nil {
			return nil, err
		}
		out[name] = dir
	}
	return out, nil
}
