package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// maxStates limits the state folders that the search for a moved workspace
// reads.
const maxStates = 64

// formerState is the journal of a workspace that is no longer at its recorded
// path.
type formerState struct {
	dir   string // state folder
	was   string // recorded path of the workspace
	moved bool   // the current workspace is that folder; otherwise nothing is at the path
}

// noJournal returns the error for a workspace without a journal. It returns nil
// if the command needs none and no other journal can be the right one, and if
// the folder was moved: then p selects the journal of its former path.
func (p *Workspace) noJournal(ctx context.Context, a *cli.App, needed bool) error {
	folder, err := RealFolder(p.Folder())
	if err != nil {
		return err
	}
	former := p.formerStates(ctx, a, folder)
	if len(former) == 1 && former[0].moved {
		p.takeFormer(a, folder, former[0])
		return nil
	}
	e := &cli.Problem{
		Code: cli.ExitUsage, What: "there is no journal for " + folder,
		Why: "a journal is kept for each path: nothing was run here, or the workspace was moved, copied or restored from a backup",
		Fix: "go to the folder in which the agent or the run was started, or name its state folder: --state DIR. Of a coding agent, remit connect lists whether its calls reach remit; restart it after connecting",
	}
	for _, f := range former {
		e.Fix += fmt.Sprintf("; the journal of %s, which is not there any more: --state %s --root %s", f.was, cli.Quote(f.dir), cli.Quote(WorkspaceRoot+"="+folder))
	}
	if needed {
		return e
	}
	return nil
}

// takeFormer selects the journal of the former path of a moved folder, as a
// person who names both does.
func (p *Workspace) takeFormer(a *cli.App, folder string, f formerState) {
	p.StateDir, p.Dir = f.dir, folder
	p.HintFlags = append([]string{"--state", f.dir, "--workspace", folder}, p.JournalFlags()...)
	_, _ = fmt.Fprintf(a.Err, "remit: this folder was %s; its journal is in %s\n", cli.Printable(f.was), cli.Printable(cli.Quote(f.dir)))
}

// AwaitsJournal returns where the first run of a workspace stores its journal,
// if there is none yet. It returns "" if there is one, also at the former path
// of a moved folder.
func (p *Workspace) AwaitsJournal(ctx context.Context, a *cli.App) (dir string, err error) {
	at := *p
	named := at.StateDir != ""
	if err = at.Find(a); err != nil || at.HasJournal() {
		return "", err
	}
	if named {
		return at.StateDir, nil
	}
	if err = at.noJournal(ctx, a, false); err != nil || at.HasJournal() {
		return "", err
	}
	return at.StateDir, nil
}

// WarnOfFormer warns before a new journal begins for a workspace that has a
// journal at its former path.
func (p *Workspace) WarnOfFormer(ctx context.Context, a *cli.App, folder string) {
	if slices.Contains(p.HintFlags, "--state") || p.HasJournal() {
		return
	}
	for _, f := range p.formerStates(ctx, a, folder) {
		if f.moved {
			_, _ = fmt.Fprintf(a.Err, "remit: this folder was %s; a new journal begins, and the former one is in %s\n", cli.Printable(f.was), cli.Printable(cli.Quote(f.dir)))
		}
	}
}

// maxNamed limits the journals of missing workspaces that a message names.
const maxNamed = 3

// formerStates searches the default state folders. It returns the journal of
// the given folder, or those of workspaces that no longer exist.
func (p *Workspace) formerStates(ctx context.Context, a *cli.App, folder string) (out []formerState) {
	home := filepath.Dir(p.StateDir)
	entries, err := os.ReadDir(home)
	if err != nil {
		return nil
	}
	for _, e := range entries[:min(len(entries), maxStates)] {
		dir := filepath.Join(home, e.Name())
		if !e.IsDir() || !sqlite.Exists(dir) {
			continue
		}
		rec, err := workspaceIn(ctx, dir)
		if err != nil || rec.Path == "" {
			continue // commands on that journal report the error
		}
		if IsFolder(a, folder, rec) {
			return []formerState{{dir, rec.Path, true}}
		}
		if _, err := os.Lstat(rec.Path); errors.Is(err, os.ErrNotExist) && len(out) < maxNamed {
			out = append(out, formerState{dir, rec.Path, false})
		}
	}
	return out
}

// workspaceIn returns the workspace of the newest session in a state folder.
func workspaceIn(ctx context.Context, dir string) (rec record.Root, err error) {
	j, err := sqlite.Open(ctx, dir)
	if err != nil {
		return rec, err
	}
	q := journal.Query{Kinds: []record.Kind{record.KindSession}, Newest: true}
	_, err = callview.FirstSession(ctx, j, q, func(body *record.Session) (ok bool) {
		rec, ok = workspaceOf(body)
		return ok
	})
	return rec, errors.Join(err, j.Close())
}
