package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// copies works like the checkpoints of editors. Before an edit tool changes a
// path, it copies the path, and undo restores the copies, newest step first. It
// copies with cp -a, which keeps bits, times, links, attributes and holes,
// while editors keep only bytes. Which copy belongs to which step is on the
// disk before the step begins, so a kill loses nothing.
//
// It handles the paths that edit tools name, and all below them. It does not
// know the files that a program writes, because its author did not name them.
// It knows that a step was a program, SQL or a request, and then reports that
// not all was undone. It does not detect that another actor changed a path
// later: it has the version from before, and none from after.
type copies struct{ envPaths }

// copied is one path before a step.
type copied struct {
	Path  string `json:"path"`
	There bool   `json:"there"`
}

func openCopies(p envPaths) (baseline, error) { return copies{p}, nil }

func (c copies) dir(n int) string { return filepath.Join(c.Store, fmt.Sprintf("step-%d", n)) }

// paths returns the paths that a file tool is about to change; for new folders
// the topmost one.
func (p envPaths) paths(s step) []string {
	switch s.Do {
	case "write", "edit", "delete":
		return []string{s.Path}
	case "mkdir":
		top := s.Path
		for up := filepath.Dir(top); up != "."; up = filepath.Dir(up) {
			if _, err := os.Lstat(filepath.Join(p.Workspace, up)); err == nil {
				break
			}
			top = up
		}
		return []string{top}
	case "move":
		return []string{s.Path, s.To}
	}
	return nil
}

func (c copies) before(n int, s step) error {
	if err := os.MkdirAll(c.dir(n), 0o700); err != nil {
		return err
	}
	var list []copied
	for i, path := range c.paths(s) {
		from := filepath.Join(c.Workspace, path)
		_, err := os.Lstat(from)
		list = append(list, copied{path, err == nil})
		if err == nil {
			if err := cp(from, filepath.Join(c.dir(n), fmt.Sprint(i))); err != nil {
				return err
			}
		}
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	draft := filepath.Join(c.dir(n), "draft")
	return errors.Join(os.WriteFile(draft, data, 0o600), os.Rename(draft, filepath.Join(c.dir(n), "list")))
}

func cp(from, to string) error {
	if out, err := exec.Command("cp", "-a", "--reflink=auto", "-T", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return nil
}

func (copies) after(int, step, string, error) error { return nil }

func (c copies) undo() string {
	claim := undone
	for n := countSteps(c.envPaths) - 1; n >= 0; n-- {
		claim = worseOf(claim, c.undoOne(n))
	}
	return claim
}

func worseOf(a, b string) string {
	order := []string{undone, partly, cannot}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// undoOne restores the copies of a step. It first moves the current files
// aside, for redo.
func (c copies) undoOne(n int) string {
	var list []copied
	data, err := os.ReadFile(filepath.Join(c.dir(n), "list"))
	if err != nil {
		return undone // killed before the step began
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return cannot
	}
	claim := undone
	if len(list) == 0 {
		claim = partly
	}
	for i, path := range list {
		at, aside := filepath.Join(c.Workspace, path.Path), filepath.Join(c.dir(n), fmt.Sprintf("later-%d", i))
		if _, err := os.Lstat(at); err == nil {
			err = errors.Join(os.RemoveAll(aside), cp(at, aside), os.RemoveAll(at))
			if err != nil {
				return cannot
			}
		}
		if path.There {
			if err := cp(filepath.Join(c.dir(n), fmt.Sprint(i)), at); err != nil {
				return cannot
			}
		}
	}
	return claim
}

func (c copies) redo() string {
	claim := undone
	for n := range countSteps(c.envPaths) {
		var list []copied
		data, err := os.ReadFile(filepath.Join(c.dir(n), "list"))
		if err != nil || json.Unmarshal(data, &list) != nil || len(list) == 0 {
			claim = partly
			continue
		}
		for i, path := range list {
			at, aside := filepath.Join(c.Workspace, path.Path), filepath.Join(c.dir(n), fmt.Sprintf("later-%d", i))
			err := os.RemoveAll(at)
			if _, there := os.Lstat(aside); there == nil {
				err = errors.Join(err, cp(aside, at))
			}
			if err != nil {
				return cannot
			}
		}
	}
	return claim
}
