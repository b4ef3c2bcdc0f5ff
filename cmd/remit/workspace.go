package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/kind"
	"github.com/remit-dev/remit/revert/record"
)

// identityAt is the identity of a folder, ok false where it cannot be opened.
func identityAt(a *cli.App, folder string) (id disk.Identity, ok bool) {
	r, err := host.OpenRoot(a.Host, folder)
	if err != nil {
		return id, false
	}
	defer func() { _ = r.Close() }()
	return r.Identity(), true
}

// isFolder reports whether a folder, by its one path, is the one that a record names.
func isFolder(a *cli.App, folder string, rec record.Root) bool {
	var was disk.Identity
	id, ok := identityAt(a, folder)
	if !ok || canon.Decode(rec.Identity, &was) != nil {
		return false
	}
	return id.Is(was) || (folder == rec.Path && id.IsAgain(was))
}

// sameWorkspace refuses, for a workspace by its one path, a state folder that was kept for another workspace: what
// is on its journal would be mixed with what happens here, and taken back there. A folder
// with the recorded path is the same workspace, also where it was restored from a
// backup; one that was moved is the same one at its new path.
func (p *workspaceState) sameWorkspace(ctx context.Context, a *cli.App, j journal.Journal, folder string) error {
	var newest record.Root
	same, err := firstSession(ctx, j, journal.Query{Kinds: []kind.Kind{kind.Session}, Newest: true}, func(body *record.Session) bool {
		rec, ok := workspaceOf(body)
		if ok && newest.Path == "" {
			newest = rec
		}
		return ok && (rec.Path == folder || isFolder(a, folder, rec))
	})
	if err != nil || same != nil || newest.Path == "" {
		return err
	}
	return &cli.Problem{
		Code: cli.ExitUsage, What: fmt.Sprintf("the state folder %q is that of another workspace", p.state),
		Why: fmt.Sprintf("its journal is of %s; the workspace here is %s", newest.Path, folder),
		Fix: fmt.Sprintf("leave --state out, or name the state folder of %s; if that is a copy of %s or a backup of it, say so by --root %s in the place of --workspace", folder, newest.Path, cli.Quote(workspaceRoot+"="+folder)),
	}
}

// ofWorkspace refuses to act on a transaction or a call, in the words of a command that
// says so by --root, where --workspace names another folder than the one that it changed.
func (p *workspaceState) ofWorkspace(ctx context.Context, a *cli.App, j journal.Journal, verb, id string) error {
	if len(p.moved) == 0 && p.workspace == "" {
		return nil
	}
	body, err := sessionOfID(ctx, j, id)
	if err != nil || body == nil {
		return err
	}
	if err := p.knownRoots(body); err != nil || p.workspace == "" || namesWorkspace(p.moved) {
		return err
	}
	folder, err := realFolder(p.workspace)
	if err != nil {
		return err
	}
	rec, ok := workspaceOf(body)
	if !ok || isFolder(a, folder, rec) {
		moved := ok && (rec.Path != folder || !p.wrote(a, body)) // a hint has to lead there
		if moved && !slices.Contains(p.given, "--workspace") {
			p.given = append(p.given, "--workspace", p.workspace)
		}
		return nil
	}
	moved := *p
	moved.moved = append(slices.Clone(p.moved), workspaceRoot+"="+folder)
	e := &cli.Problem{
		Code: cli.ExitUsage, What: fmt.Sprintf("%s belongs to another workspace", id),
		Why: fmt.Sprintf("it is of %s; --workspace names %s", rec.Path, folder),
		Fix: fmt.Sprintf("leave --workspace out to work in %s; if %s is a copy of it or a backup of it, say so: %s", rec.Path, folder, moved.hint(verb, id)),
	}
	if rec.Path == folder {
		e.Why = fmt.Sprintf("another folder is at %s since, such as a copy or a restored backup", folder)
		e.Fix = "if it has the same files, say so: " + moved.hint(verb, id)
	}
	return e
}

// knownRoots refuses a --root with a name that no root of the session has.
func (p *workspaceState) knownRoots(s *record.Session) error {
	var names []string
	for _, r := range s.Roots {
		names = append(names, r.Name)
	}
	for _, m := range p.moved {
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

// wrote reports whether a session's record was written in this state folder; see agent.RootError.
func (p *workspaceState) wrote(a *cli.App, body *record.Session) bool {
	dir, err := realFolder(p.state)
	return err == nil && (body.State.Path == "" || isFolder(a, dir, body.State))
}

// elsewhere is the workspace that a transaction belongs to where the command line does
// not name it and it is not the current folder; empty otherwise.
func (p *workspaceState) elsewhere(ctx context.Context, a *cli.App, j journal.Journal, txn string) (string, error) {
	if p.workspace != "" || namesWorkspace(p.moved) {
		return "", nil
	}
	body, err := sessionOfID(ctx, j, txn)
	if err != nil || body == nil {
		return "", err
	}
	rec, ok := workspaceOf(body)
	here, err := realFolder(".")
	if !ok || (err == nil && isFolder(a, here, rec)) {
		return "", nil
	}
	return rec.Path, nil
}

// namesWorkspace reports whether --root says which folder the workspace is. That is the
// person's word, also where the journal has another folder.
func namesWorkspace(roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return strings.HasPrefix(r, workspaceRoot+"=") })
}

// workspaceRoot is the name of the root that --workspace names.
const workspaceRoot = "workspace"

// workspaceOf is the workspace that a session's record names, ok false where it names none.
func workspaceOf(body *record.Session) (r record.Root, ok bool) {
	i := slices.IndexFunc(body.Roots, func(r record.Root) bool { return r.Name == workspaceRoot })
	if i < 0 {
		return r, false
	}
	return body.Roots[i], true
}

// sessionRecord is the record of one session, nil where there is none.
func sessionRecord(ctx context.Context, j journal.Journal, session string) (*record.Session, error) {
	return firstSession(ctx, j, journal.Query{Session: session, Kinds: []kind.Kind{kind.Session}, Limit: 1}, func(*record.Session) bool { return true })
}

// firstSession is the first record of a session for which is holds, nil where there is none.
func firstSession(ctx context.Context, j journal.Journal, q journal.Query, is func(*record.Session) bool) (*record.Session, error) {
	for e, err := range j.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		if e.Erased != "" {
			continue
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return nil, err
		}
		if body, ok := rec.Body.(*record.Session); ok && is(body) {
			return body, nil
		}
	}
	return nil, nil
}

// sessionOfID is the record of the session that a transaction or a call belongs to, nil
// where nothing has that id.
func sessionOfID(ctx context.Context, j journal.Journal, id string) (*record.Session, error) {
	t, _, err := revert.LoadCall(ctx, j, id)
	if errors.Is(err, journal.ErrNotFound) {
		t, err = revert.Load(ctx, j, id)
	}
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return sessionRecord(ctx, j, t.Session)
}

// otherFolder says where the folders are that a revert or a redo needs, and the command
// that names them.
func (p *workspaceState) otherFolder(a *cli.App, err error, way revertOp, id string) error {
	var lost *agent.RootError
	var away *revert.ElsewhereError
	what := "nothing was taken back"
	switch way {
	case redoing:
		what = "nothing was brought back"
	case previewing:
		what = "nothing can be previewed"
	default:
	}
	switch {
	case errors.As(err, &lost) && lost.State.Path != "":
		return &cli.Problem{Code: cli.ExitUsage, What: what, Why: lost.Error(), Fix: p.inEither(a, lost.Roots, way, id)}
	case errors.As(err, &lost):
		again := *p
		for _, r := range lost.Roots {
			dir := "DIR"
			if here, err := realFolder(p.folder()); err == nil && (isFolder(a, here, r) || here == r.Path) {
				dir = here // the workspace itself was moved, or restored
			}
			again.moved = append(slices.Clip(again.moved), r.Name+"="+dir)
		}
		return &cli.Problem{Code: cli.ExitUsage, What: what, Why: lost.Error(), Fix: "say where it is now, also a copy or a restored backup: " + again.hint(way.verb(), id)}
	case errors.As(err, &away) && len(away.Roots) > 0:
		again := *p
		again.moved = slices.DeleteFunc(slices.Clone(p.moved), func(m string) bool {
			return slices.ContainsFunc(away.Roots, func(r record.Root) bool { return strings.HasPrefix(m, r.Name+"=") })
		})
		for _, r := range away.Roots {
			again.moved = append(again.moved, r.Name+"="+r.Path)
		}
		return &cli.Problem{Code: cli.ExitUsage, What: what, Why: away.Error(), Fix: "work there: " + again.hint(way.verb(), id)}
	case errors.As(err, &away):
		again := *p
		again.moved = nil
		return &cli.Problem{Code: cli.ExitUsage, What: what, Why: away.Error(), Fix: "leave --root out: " + again.hint(way.verb(), id)}
	}
	return err
}

// inEither are the commands that name the folders of roots: the recorded ones as far as
// they are still there, and copies of them.
func (p *workspaceState) inEither(a *cli.App, roots []record.Root, way revertOp, id string) string {
	was, copied, there := *p, *p, true
	for _, r := range roots {
		there = there && isFolder(a, r.Path, r)
		was.moved = append(slices.Clip(was.moved), r.Name+"="+r.Path)
		dir := "DIR"
		if here, err := realFolder("."); err == nil && r.Name == workspaceRoot && here != r.Path {
			dir = here
		}
		copied.moved = append(slices.Clip(copied.moved), r.Name+"="+dir)
	}
	fix := "in a copy: " + copied.hint(way.verb(), id)
	if there {
		fix = "in the recorded folder: " + was.hint(way.verb(), id) + "; " + fix
	}
	return fix
}
