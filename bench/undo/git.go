package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// git makes a commit before the first step and after each one, and reverts with
// git reset --hard. It is a better form of common practice. The repository is
// separate, beside the folder, so that the user's branches, index and hooks
// stay unchanged. It also adds ignored files. It commits the current state
// before a reset, so that nothing that git can store is lost. After a kill the
// next process continues from the commits on the disk.
//
// It stores the bytes of files and links below the folder, by any writer,
// programs included, and whether a file is executable. It does not store other
// bits, times, extended attributes, hard links, holes, empty folders, .git
// itself, anything outside the folder, rows and services. It distinguishes the
// agent's changes from another actor's only by the commits around each step,
// and reset --hard does not check. It knows that a step was SQL or a request,
// and then reports that not all was undone.
type git struct {
	envPaths
	dir   string
	blind bool // a step was of a kind that no commit can store
}

func openGit(p envPaths) (baseline, error) {
	g := &git{envPaths: p, dir: filepath.Join(p.Store, "repository")}
	_, err := os.Stat(filepath.Join(p.Store, "blind"))
	g.blind = err == nil
	if _, err := os.Stat(g.dir); err == nil {
		_ = os.Remove(filepath.Join(g.dir, "index.lock")) // of a killed process
		return g, nil
	}
	_, err = g.git("init", "-q")
	for _, pair := range [][2]string{{"user.name", "steps"}, {"user.email", "steps@example.com"}, {"core.autocrlf", "false"}, {"gc.auto", "0"}} {
		if err == nil {
			_, err = g.git("config", pair[0], pair[1])
		}
	}
	return g, err
}

func (g *git) git(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"--git-dir=" + g.dir, "--work-tree=" + g.Workspace}, args...)...)
	cmd.Dir, cmd.Env = g.Workspace, gitEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// commit stores the current state under a name.
func (g *git) commit(name string) error {
	_, err := g.git("add", "-A", "-f", ".")
	if err == nil {
		_, err = g.git("commit", "-q", "--allow-empty", "--no-verify", "-m", name)
	}
	if err == nil {
		_, err = g.git("tag", "-f", name)
	}
	return err
}

func (g *git) before(n int, s step) error {
	if slices.Contains([]string{"sql", "post", "put", "remove", "message"}, s.Do) {
		g.blind = true
		if err := os.WriteFile(filepath.Join(g.Store, "blind"), nil, 0o600); err != nil {
			return err
		}
	}
	return g.commit(fmt.Sprintf("before-%d", n))
}

func (g *git) after(n int, _ step, _ string, _ error) error {
	return g.commit(fmt.Sprintf("after-%d", n))
}

func (g *git) claim(err error) string {
	if err != nil {
		return cannot
	}
	if g.blind {
		return partly
	}
	return undone
}

func (g *git) undo() string {
	if err := g.commit("undone"); err != nil {
		return cannot
	}
	_, err := g.git("reset", "-q", "--hard", "before-0")
	return g.claim(err)
}

// undoOne reverts the difference of one step, which git refuses if later
// changes touch the same lines.
func (g *git) undoOne(n int) string {
	patch, err := g.git("diff", "--binary", "--full-index", fmt.Sprintf("before-%d", n), fmt.Sprintf("after-%d", n))
	if err != nil || patch == "" {
		return g.claim(err)
	}
	file := filepath.Join(g.Store, "patch")
	if err := os.WriteFile(file, []byte(patch+"\n"), 0o600); err != nil {
		return cannot
	}
	_, err = g.git("apply", "-R", "--whitespace=nowarn", file)
	return g.claim(err)
}

func (g *git) redo() string {
	_, err := g.git("reset", "-q", "--hard", "undone")
	return g.claim(err)
}

// nothing cannot undo, and reports that.
type nothing struct{}

func openNothing(envPaths) (baseline, error) { return nothing{}, nil }

func (nothing) before(int, step) error               { return nil }
func (nothing) after(int, step, string, error) error { return nil }
func (nothing) undo() string                         { return cannot }
func (nothing) undoOne(int) string                   { return cannot }
func (nothing) redo() string                         { return cannot }
