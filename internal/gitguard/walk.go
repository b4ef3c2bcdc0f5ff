package gitguard

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// trail is the result of resolving a name as git does.
type trail struct {
	name   string   // the resolved name
	end    string   // absolute; contains no link
	passed []string // names below the root on the path, including links and the end
	links  bool     // the path contains a symbolic link
	lost   bool     // the path cannot be resolved: end is unknown
	gone   bool     // the end does not exist
}

// mostLinks is the number of links that the system follows for one name.
const mostLinks = 40

var errOutside = errors.New("outside of the root")

// follow resolves a name as the system does: part by part, with ".." relative
// to the target of a link. The argument from is absolute and contains no link.
// A missing part counts as a folder that a later change can create.
func (g *Guard) follow(from, name string) trail {
	t := trail{name: name, end: from}
	if path.IsAbs(name) {
		t.end = "/"
	}
	parts := strings.Split(name, "/")
	for links := 0; len(parts) > 0; {
		part := parts[0]
		parts = parts[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			t.end, t.gone = path.Dir(t.end), false
			continue
		}
		s := g.look(path.Join(t.end, part))
		if below, ok := g.below(s.at); ok {
			t.passed = append(t.passed, below)
		}
		switch {
		case s.err != nil || s.target != "" && links == mostLinks:
			t.lost = true
			return t
		case s.target == "":
			t.end, t.gone = s.at, s.gone
			continue
		case path.IsAbs(s.target):
			t.end = "/"
		}
		links++
		t.links = true
		parts = append(strings.Split(s.target, "/"), parts...)
	}
	return t
}

// step is the file at an absolute path.
type step struct {
	at     string // the path, or that of the root if it is another name of the root
	target string // target of a link
	gone   bool   // the file does not exist
	err    error  // the file is unknown
}

// look returns the file at an absolute path whose folder contains no link.
func (g *Guard) look(at string) step {
	if s, known := g.steps[at]; known {
		return s
	}
	s := step{at: at}
	if below, ok := g.below(at); ok {
		if below != "." {
			s.target, s.err = g.files.Link(below)
		}
	} else if s.err = errOutside; g.files.Outside != nil && g.placed {
		root := false
		if s.target, root, s.err = g.files.Outside(at); root {
			s.at = g.dir
		}
	}
	if errors.Is(s.err, fs.ErrNotExist) {
		s.gone, s.err = true, nil
	}
	g.steps[at] = s
	return s
}

// below returns an absolute path relative to the root, if it is below the root.
func (g *Guard) below(at string) (string, bool) {
	if at == g.dir {
		return ".", true
	}
	return strings.CutPrefix(at, strings.TrimSuffix(g.dir, "/")+"/")
}

// abs returns the absolute path of a name below the root.
func (g *Guard) abs(name string) string { return path.Join(g.dir, name) }

// within reports whether the configured working folder of git is in the root,
// without a link on its path.
func (g *Guard) within(values []string, dir string) bool {
	if len(values) != 1 || path.IsAbs(values[0]) {
		return false
	}
	t := g.follow(g.abs(dir), values[0])
	_, ok := g.below(t.end)
	return ok && !t.links && !t.lost
}

// repositoryAbove reports whether a folder above the root is or may be a
// repository.
func (g *Guard) repositoryAbove() bool {
	if !g.placed || g.files.Outside == nil {
		return true
	}
	for dir := g.dir; dir != "/"; {
		dir = path.Dir(dir)
		if _, _, err := g.files.Outside(path.Join(dir, ".git")); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}
