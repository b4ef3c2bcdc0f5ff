package state

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// identityAt returns the identity of a folder. ok is false if the folder cannot
// be opened.
func identityAt(a *cli.App, folder string) (id disk.Identity, ok bool) {
	r, err := host.OpenRoot(a.Host, folder)
	if err != nil {
		return id, false
	}
	defer func() { _ = r.Close() }()
	return r.Identity(), true
}

// IsFolder reports whether a record names the folder at this real path.
func IsFolder(a *cli.App, folder string, rec record.Root) bool {
	var was disk.Identity
	id, ok := identityAt(a, folder)
	if !ok || canon.Decode(rec.Identity, &was) != nil {
		return false
	}
	return id.Is(was) || (folder == rec.Path && id.IsAgain(was))
}

// CheckOwner rejects the state folder of another workspace: its journal would
// mix both. The path is that of the workspace, without links. A restored folder
// at the recorded path is the same workspace. So is a moved folder at its new
// path.
func (p *Workspace) CheckOwner(ctx context.Context, a *cli.App, j journal.Journal, folder string) error {
	newest, same, err := p.ownerOf(ctx, a, j, folder)
	if err != nil || same || newest.Path == "" {
		return err
	}
	return &cli.Problem{
		Code: cli.ExitUsage, What: fmt.Sprintf("the state folder %q is that of another workspace", p.StateDir),
		Why: fmt.Sprintf("its journal is of %s; the workspace here is %s", newest.Path, folder),
		Fix: fmt.Sprintf("leave --state out, or name the state folder of %s; if that is a copy of %s or a backup of it, say so by --root %s in the place of --workspace", folder, newest.Path, cli.Quote(WorkspaceRoot+"="+folder)),
	}
}

// ownerOf returns the newest workspace of a state folder, and whether it is the
// folder. The sessions of a shared journal belong to many nodes, so there the
// node says what its folders are.
func (p *Workspace) ownerOf(ctx context.Context, a *cli.App, j journal.Journal, folder string) (newest record.Root, is bool, err error) {
	same := func(rec record.Root) bool { return rec.Path == folder || IsFolder(a, folder, rec) }
	if n, ok := j.(Node); ok {
		roots, err := n.Roots(ctx)
		newest, ok = workspaceOf(&record.Session{Roots: roots})
		return newest, ok && same(newest), err
	}
	found, err := callview.FirstSession(ctx, j, journal.Query{Kinds: []record.Kind{record.KindSession}, Newest: true}, func(body *record.Session) bool {
		rec, ok := workspaceOf(body)
		if ok && newest.Path == "" {
			newest = rec
		}
		return ok && same(rec)
	})
	return newest, found != nil, err
}

// CheckTxn rejects a transaction or a call of another workspace than
// --workspace names. Verb is the command of the hint. --root permits it.
func (p *Workspace) CheckTxn(ctx context.Context, a *cli.App, j journal.Journal, verb, id string) error {
	if len(p.Moved) == 0 && p.Dir == "" {
		return nil
	}
	body, err := SessionOfID(ctx, j, id)
	if err != nil || body == nil {
		return err
	}
	if n, ok := j.(Node); ok && n.NodeID() != body.State.Node && !NamesWorkspace(p.Moved) {
		if verb == "revert" || verb == "redo" { // these report it with what they did not do
			return nil
		}
		return p.NodeProblem(id+" belongs to another node", &agent.NodeError{Node: body.State.Node, Roots: body.Roots})
	}
	if err := p.knownRoots(body); err != nil || p.Dir == "" || NamesWorkspace(p.Moved) {
		return err
	}
	folder, err := RealFolder(p.Dir)
	if err != nil {
		return err
	}
	rec, ok := workspaceOf(body)
	if !ok || IsFolder(a, folder, rec) {
		moved := ok && (rec.Path != folder || !p.wroteSession(a, body)) // the hint must select this workspace
		if moved && !slices.Contains(p.HintFlags, "--workspace") {
			p.HintFlags = append(p.HintFlags, "--workspace", p.Dir)
		}
		return nil
	}
	moved := *p
	moved.Moved = append(slices.Clone(p.Moved), WorkspaceRoot+"="+folder)
	e := &cli.Problem{
		Code: cli.ExitUsage, What: fmt.Sprintf("%s belongs to another workspace", id),
		Why: fmt.Sprintf("it is of %s; --workspace names %s", rec.Path, folder),
		Fix: fmt.Sprintf("leave --workspace out to work in %s; if %s is a copy of it or a backup of it, say so: %s", rec.Path, folder, moved.Hint(verb, id)),
	}
	if rec.Path == folder {
		e.Why = fmt.Sprintf("another folder is at %s since, such as a copy or a restored backup", folder)
		e.Fix = "if it has the same files, say so: " + moved.Hint(verb, id)
	}
	return e
}

// knownRoots rejects a --root whose name no root of the session has.
func (p *Workspace) knownRoots(s *record.Session) error {
	var names []string
	for _, r := range s.Roots {
		names = append(names, r.Name)
	}
	for _, m := range p.Moved {
		name, _, _ := strings.Cut(m, "=")
		if slices.Contains(names, name) {
			continue
		}
		fix := "leave --root out: the record has no roots"
		if len(names) > 0 {
			fix = "valid names are " + strings.Join(names, ", ")
		}
		return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--root %q: the record has no root of that name", m), Fix: fix}
	}
	return nil
}

// wroteSession reports whether this state folder contained the journal when the
// session began; see agent.RootError.
func (p *Workspace) wroteSession(a *cli.App, body *record.Session) bool {
	dir, err := RealFolder(p.StateDir)
	return err == nil && (body.State.Path == "" || IsFolder(a, dir, body.State))
}

// Elsewhere returns the workspace of a transaction. It returns "" if the
// command line names the workspace, or if it is the current folder.
func (p *Workspace) Elsewhere(ctx context.Context, a *cli.App, j journal.Journal, txn string) (string, error) {
	if p.Dir != "" || NamesWorkspace(p.Moved) {
		return "", nil
	}
	body, err := SessionOfID(ctx, j, txn)
	if err != nil || body == nil {
		return "", err
	}
	rec, ok := workspaceOf(body)
	here, err := RealFolder(".")
	if !ok || (err == nil && IsFolder(a, here, rec)) {
		return "", nil
	}
	return rec.Path, nil
}
