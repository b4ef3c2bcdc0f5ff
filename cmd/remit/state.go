package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
)

// workspaceState says which workspace, and where its journal is kept.
type workspaceState struct {
	workspace, state string
	moved            []string // NAME=DIR: where the folders of roots are by now
	databases        []string // NAME=LOCATION each
	services         services
	declared         declarationFlags
	upstreams        upstreamOptions
	sandbox          string   // the least level, of commands that run programs
	gitAuthor        bool     // programs are told who commits are by
	needed           bool     // there is nothing to do without a journal
	offers           bool     // for completion: the command says what is wrong
	given            []string // flags to repeat in a hint, so that it leads to the same journal
}

// placeFlags adds the flags that find a journal.
func placeFlags(cmd *cobra.Command, p *workspaceState) {
	cmd.Flags().Var(cli.FolderFlag{To: &p.workspace}, "workspace", "workspace `DIR`; its root is named workspace (default: the current folder)")
	cmd.Flags().Var(cli.FolderFlag{To: &p.state}, "state", "`DIR` that holds the journal (default: one for each workspace in the user's state folder)")
}

// folder returns the workspace as it was named.
func (p *workspaceState) folder() string {
	if p.workspace == "" {
		return "."
	}
	return p.workspace
}

// find settles where the journal is.
func (p *workspaceState) find(a *cli.App) error {
	if p.state != "" {
		p.given = []string{"--state", p.state}
		return nil
	}
	if p.workspace != "" {
		p.given = []string{"--workspace", p.workspace}
	}
	folder, err := realFolder(p.folder())
	if err != nil {
		return err
	}
	home, err := stateHome(a.Getenv)
	if err != nil {
		return err
	}
	p.state = filepath.Join(home, "remit", stateName(folder))
	return nil
}

// realFolder is the one path of a folder, however it was named.
func realFolder(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(abs); err == nil && !info.IsDir() {
			err = errors.New("it is not a folder")
		}
	}
	if err != nil {
		return "", &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the folder %q cannot be used", dir), Why: cli.PlainError(err), Fix: "name an existing folder"}
	}
	return abs, nil
}

// stateHome is the user's folder for state. A relative XDG_STATE_HOME is
// ignored, as its specification says.
func stateHome(env func(string) string) (string, error) {
	if dir := env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	if dir := env("LOCALAPPDATA"); runtime.GOOS == "windows" && filepath.IsAbs(dir) {
		return dir, nil
	}
	home := env("HOME")
	if runtime.GOOS == "windows" {
		home = env("USERPROFILE")
	}
	if !filepath.IsAbs(home) {
		return "", &cli.Problem{Code: cli.ExitUsage, What: "there is no home folder to keep the journal in", Fix: "name a folder with --state"}
	}
	return filepath.Join(home, ".local", "state"), nil
}

// stateName tells folders of one name apart by a digest of their paths.
func stateName(folder string) string {
	name := strings.Map(func(r rune) rune {
		if r == filepath.Separator || r == ':' {
			return -1
		}
		return r
	}, filepath.Base(folder))
	if name == "" {
		name = "root"
	}
	digest := strings.TrimPrefix(string(canon.SumBytes([]byte(folder))), "sha256:")
	return name + "-" + digest[:12]
}

// keepOut refuses a state folder inside a root, before it is made: calls could
// change their own record, and the record would be in the way of the work.
func (p *workspaceState) keepOut(roots []string) error {
	dir, err := filepath.Abs(p.state)
	if err != nil {
		return err
	}
	for {
		// A folder that is not there yet lies where the first one above it does.
		if info, err := os.Stat(dir); err == nil {
			for _, root := range roots {
				if r, err := os.Stat(root); err == nil && os.SameFile(r, info) {
					return &cli.Problem{
						Code: cli.ExitUsage, What: fmt.Sprintf("the state folder %s lies inside the root %s", p.state, root),
						Why: "calls could change their own journal", Fix: "name the folder that calls may change, by --workspace or by starting there; --state is where the journal is",
					}
				}
			}
			if dir, err = filepath.EvalSymlinks(dir); err != nil {
				return err
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return nil
		}
		dir = up
	}
}

// keepIn refuses a root inside the state folder: calls could change what is kept
// there.
func (p *workspaceState) keepIn(roots []string) error {
	for _, root := range roots {
		above := workspaceState{state: root}
		if err := above.keepOut([]string{p.state}); err != nil {
			return &cli.Problem{
				Code: cli.ExitUsage, What: fmt.Sprintf("the root %s lies inside the state folder %s", root, p.state),
				Why: "calls could change what is kept there", Fix: "name another folder with --state",
			}
		}
	}
	return nil
}

// open opens the journal to write to.
func (p *workspaceState) open(ctx context.Context) (journal.Journal, error) {
	if info, err := os.Stat(p.state); err == nil && !info.IsDir() {
		return nil, &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the state %q is not a folder", p.state), Fix: "name a folder with --state"}
	}
	j, err := sqlite.Open(ctx, p.state)
	if err != nil {
		return nil, err
	}
	return j, nil
}

// read opens the journal of a workspace where something may have been recorded.
// One where nothing was is empty; looking at it leaves no folder behind. A state
// that was named and holds no journal is not the one that was meant.
func (p *workspaceState) read(ctx context.Context, a *cli.App) (journal.Journal, error) {
	named := p.state != ""
	if err := p.find(a); err != nil {
		return nil, err
	}
	switch {
	case sqlite.Exists(p.state):
		j, err := p.open(ctx)
		if err != nil || !named || p.workspace == "" || namesWorkspace(p.moved) {
			return j, err
		}
		if folder, err := realFolder(p.workspace); err == nil { // the journal of one that is gone can still be read
			var other *cli.Problem // a journal that cannot be read is for the command to tell of
			if errors.As(p.sameWorkspace(ctx, a, j, folder), &other) {
				return nil, errors.Join(other, j.Close())
			}
		}
		return j, nil
	case named:
		return nil, &cli.Problem{
			Code: cli.ExitUsage, What: fmt.Sprintf("there is no journal in %q", p.state),
			Fix: "check --state: it is the folder that remit run was given; without it, the journal of the workspace is read",
		}
	}
	if !p.offers {
		if err := p.noJournal(ctx, a, p.needed); err != nil {
			return nil, err
		}
	}
	return journal.Memory(), nil
}

// hint is a command that works on the same journal.
func (p *workspaceState) hint(args ...string) string {
	words := append([]string{"remit"}, args...)
	given := p.given
	if len(args) > 0 && (slices.Contains([]string{"revert", "redo", "diff", "recover"}, args[0]) || resumes(args)) { // which reach what the run reached
		for _, r := range p.moved {
			given = append(slices.Clip(given), "--root", r)
		}
		given = slices.Concat(given, p.services.again())
	}
	if len(args) > 0 && (args[0] == "show" || resumes(args)) {
		given = slices.Concat(given, p.declared.again())
	}
	if resumes(args) { // others find databases on the journal, and run no program
		given = slices.Concat(given, p.databasesAgain())
		if p.sandbox != "" && p.sandbox != string(process.Strict) {
			given = append(given, "--sandbox", p.sandbox)
		}
	}
	for _, w := range given {
		words = append(words, cli.Quote(w))
	}
	return strings.Join(words, " ")
}

// shown is an id as the hint to show it names it, so that it leads there.
func (p *workspaceState) shown(id string) string {
	return strings.TrimPrefix(p.hint("show", id), "remit show ")
}

// movedFlag adds the flag that names folders which are not where a record says.
func movedFlag(cmd *cobra.Command, p *workspaceState) {
	cmd.Flags().StringArrayVar(&p.moved, "root", nil, "where the folder of a root is now, as `NAME=DIR`: if it was moved, or DIR is a copy or a restored backup of it")
	serviceFlags(cmd, &p.services)
}

// named are the roots that a command line names, as NAME=DIR: by --root, and the
// workspace where --root does not name it.
func (p *workspaceState) named() []string {
	if p.workspace != "" && !namesWorkspace(p.moved) {
		return append([]string{workspaceRoot + "=" + p.workspace}, p.moved...)
	}
	return p.moved
}

// rootsNow are the roots that a command line names beside those of the record. What
// --root names is the person's word; --workspace has to be the recorded folder. Folders are
// those that calls may have changed, where that is known.
func (p *workspaceState) rootsNow(a *cli.App, folders ...string) (opts []agent.Option, err error) {
	for _, r := range p.named() {
		name, dir, err := rootOf(r)
		if err != nil {
			return nil, err
		}
		root := agent.Root
		if slices.Contains(p.moved, r) {
			root = agent.MovedRoot
		}
		opts = append(opts, root(name, dir))
	}
	more, err := p.services.options(a, folders)
	return append(opts, more...), err
}

// rootOf reads NAME=DIR.
func rootOf(text string) (name, dir string, err error) {
	name, dir, ok := strings.Cut(text, "=")
	if !ok || name == "" || dir == "" {
		return "", "", &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--root %q names no folder", text), Fix: "write --root NAME=DIR"}
	}
	dir, err = realFolder(dir)
	return name, dir, err
}
