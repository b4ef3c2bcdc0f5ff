package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/canon"
)

// Folder returns the workspace as the flags name it. Default: the current
// folder.
func (p *Workspace) Folder() string {
	if p.Dir == "" {
		return "."
	}
	return p.Dir
}

// Find sets the state folder and the location of the journal.
func (p *Workspace) Find(a *cli.App) error {
	if !p.found {
		p.found, p.stateGiven = true, p.StateDir != ""
	}
	if err := p.FindJournal(a.Getenv); err != nil {
		return err
	}
	if p.StateDir != "" {
		p.HintFlags = append([]string{"--state", p.StateDir}, p.JournalFlags()...)
		return p.checkNode()
	}
	if p.Dir != "" {
		p.HintFlags = []string{"--workspace", p.Dir}
	}
	p.HintFlags = append(p.HintFlags, p.JournalFlags()...)
	folder, err := RealFolder(p.Folder())
	if err != nil {
		return err
	}
	home, err := Home(a.Getenv)
	if err != nil {
		return err
	}
	p.StateDir = filepath.Join(home, "remit", stateName(folder))
	return p.checkNode()
}

// RealFolder returns the absolute path of a folder without symbolic links.
func RealFolder(dir string) (string, error) {
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
	if !utf8.ValidString(abs) {
		return "", &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the folder %q cannot be used", dir), Why: fmt.Sprintf("its path %q is not valid UTF-8, and records cannot hold it", abs), Fix: "use a folder whose path is valid UTF-8"}
	}
	return abs, nil
}

// Home returns the user's folder for state. It ignores a relative
// XDG_STATE_HOME, as the specification says.
func Home(env func(string) string) (string, error) {
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

// stateName returns the name of the state folder of a workspace. A digest of
// the path distinguishes folders with the same name.
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
