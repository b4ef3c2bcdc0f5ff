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
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// AddRootFlag adds the flags of roots that are not at their recorded folders,
// and of services.
func AddRootFlag(cmd *cobra.Command, p *Workspace) {
	cmd.Flags().StringArrayVar(&p.Moved, "root", nil, "folder of a root, as `NAME=DIR`, if the folder was moved, or if DIR is a copy or a restored backup of it")
	AddServiceFlags(cmd, &p.Services)
}

// NamedRoots returns the roots of the command line as NAME=DIR: those of
// --root, and the workspace.
func (p *Workspace) NamedRoots() []string {
	if p.Dir != "" && !NamesWorkspace(p.Moved) {
		return append([]string{WorkspaceRoot + "=" + p.Dir}, p.Moved...)
	}
	return p.Moved
}

// NamedRootOptions returns the options of the roots and services that the
// command line names. A person vouches for --root; --workspace must be the
// recorded folder. Folders are those that calls may have changed, if known.
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

// ParseRoot parses NAME=DIR.
func ParseRoot(text string) (name, dir string, err error) {
	name, dir, ok := strings.Cut(text, "=")
	if !ok || name == "" || dir == "" {
		return "", "", &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--root %q names no folder", text), Fix: "write --root NAME=DIR"}
	}
	dir, err = RealFolder(dir)
	return name, dir, err
}

// NamesWorkspace reports whether --root names the folder of the workspace. A
// person vouches for that folder.
func NamesWorkspace(roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return strings.HasPrefix(r, WorkspaceRoot+"=") })
}

// WorkspaceRoot is the name of the root of the workspace.
const WorkspaceRoot = "workspace"

// RecordedRoots returns the roots, as NAME=DIR, that calls may have changed:
// those of the session of a call or a transaction, and those of the command
// line. An unknown ID has none of the former.
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

// FoldersOf returns the folders of NAME=DIR.
func FoldersOf(roots []string) (folders []string) {
	for _, r := range roots {
		_, dir, _ := strings.Cut(r, "=")
		folders = append(folders, dir)
	}
	return folders
}

// RootFolders returns the folders of a session's roots by name. --root replaces
// the recorded folder.
func (p *Workspace) RootFolders(ctx context.Context, j journal.Journal, session string) (map[string]callview.Folder, error) {
	named := map[string]string{}
	for _, r := range p.Moved {
		name, dir, err := ParseRoot(r)
		if err != nil {
			return nil, err
		}
		named[name] = dir
	}
	return callview.FoldersOf(ctx, j, session, named)
}
