// Package gitguard finds the changes of files that make git run code later.
//
// A person's git reads what a program left in a repository: hooks, configuration,
// links to other repositories, the steps of a rebase that has stopped. The history
// itself (objects, references, the index) runs nothing.
package gitguard

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Change is one change of a file below a root.
type Change struct {
	Path    string // slash-separated, relative to the root
	Type    string // what is to be there: "file", "dir", "link"; empty: nothing
	Existed bool   // a file was there
	After   func() ([]byte, error)
	Before  func() ([]byte, error)
}

// Facts are what a change means to git.
type Facts struct {
	Kind string
	Keys []string // Config: the keys whose values change
	New  bool     // Config: there was none before
}

// The kinds of Facts.
const (
	Config     = "config"
	Hook       = "hook"
	Attributes = "attributes"
	Link       = "link"
	Todo       = "todo"
	Repository = "repository"
)

// MaxSize is the most bytes that are read of a file to find out what it means.
// A larger one counts as one that runs code.
const MaxSize = 1 << 20

// ErrTooLarge says that a file is larger than MaxSize.
var ErrTooLarge = errors.New("the file is too large to look at")

// Guard judges the changes of one call in one root.
type Guard struct {
	dir     string                            // of the root, absolute
	read    func(name string) ([]byte, error) // of the root, before the changes
	removed map[string]bool
	hooks   map[string][]string // the folders of hooks of the repository at a path
}

// New returns a Guard for all changes of a call in the root at dir. Read returns
// what a file of the root holds, and an error that is fs.ErrNotExist where there is none.
func New(dir string, read func(name string) ([]byte, error), all []Change) *Guard {
	g := &Guard{dir: dir, read: read, removed: map[string]bool{}, hooks: map[string][]string{}}
	for _, c := range all {
		if c.Type == "" {
			g.removed[c.Path] = true
		}
	}
	return g
}

// Facts returns what a change means to git, or nil if git runs nothing by it.
func (g *Guard) Facts(c Change) *Facts {
	if c.Type == "dir" {
		return nil
	}
	if g.isHook(c.Path) {
		return &Facts{Kind: Hook}
	}
	all := normal(c.Path)
	at := gitAt(all)
	switch {
	case at < 0:
		return g.outside(c, all)
	case at == len(all)-1:
		return g.pointer(c, all[at])
	}
	return g.inside(c, all, at+1)
}

// normal returns the segments of a path as a file system reads them that ignores
// case, and dots and spaces at the end.
func normal(name string) []string {
	all := strings.Split(name, "/")
	for i, s := range all {
		all[i] = strings.TrimRight(strings.ToLower(s), ". ")
		if all[i] == "git~1" {
			all[i] = ".git"
		}
	}
	return all
}

// gitAt returns where the name of the innermost git folder stands, or -1.
func gitAt(all []string) int {
	for i := len(all) - 1; i >= 0; i-- {
		if strings.HasSuffix(all[i], ".git") {
			return i
		}
	}
	return -1
}

// inside judges a change in a git folder; from is where the names below it begin.
func (g *Guard) inside(c Change, all []string, from int) *Facts {
	rest := all[from:]
	base := rest[len(rest)-1]
	if named(rest) { // a branch may be called config, and hooks/x
		return g.head(c, base)
	}
	dir := path.Dir(c.Path)
	switch hook := slices.Index(rest, "hooks"); {
	case c.Type == "link":
		return &Facts{Kind: Link}
	case base == "config" || base == "config.worktree":
		if c.Type == "" && g.removed[dir+"/HEAD"] {
			return nil // the whole repository goes
		}
		return g.config(c, dir)
	case hook >= 0:
		return g.hook(c, base, upTo(c.Path, from+hook))
	case c.Type == "":
		return nil
	case base == "attributes" && len(rest) > 1 && rest[len(rest)-2] == "info":
		return &Facts{Kind: Attributes}
	case base == "git-rebase-todo":
		return todo(c)
	case base == "strategy" || base == "opts" && len(rest) > 1 && rest[len(rest)-2] == "sequencer":
		return strategy(c)
	case c.Type == "file" && (rest[0] == "remotes" || rest[0] == "branches"): // git's older way to write remotes
		return &Facts{Kind: Config, Keys: []string{"remote." + base + ".url"}}
	case base == "commondir":
		return commondir(c, rest)
	}
	return nil
}

// named reports whether a path below a git folder is the name of a branch or a tag.
func named(rest []string) bool {
	if rest[0] == "logs" {
		rest = rest[1:]
	}
	return len(rest) > 2 && rest[0] == "refs" && (rest[1] == "heads" || rest[1] == "tags")
}

func upTo(name string, segments int) string {
	return strings.Join(strings.Split(name, "/")[:segments], "/")
}

func (g *Guard) hook(c Change, base, dir string) *Facts {
	if strings.HasSuffix(base, ".sample") || c.Type == "" && g.removed[dir+"/HEAD"] {
		return nil
	}
	return &Facts{Kind: Hook}
}

func (g *Guard) config(c Change, dir string) *Facts {
	before, after := "", ""
	for _, one := range []struct {
		there bool
		read  func() ([]byte, error)
		to    *string
	}{{c.Existed, c.Before, &before}, {c.Type != "", c.After, &after}} {
		if !one.there {
			continue
		}
		data, err := one.read()
		if err != nil {
			return &Facts{Kind: Config, New: !c.Existed, Keys: []string{unreadable}}
		}
		*one.to = string(data)
	}
	changed := keys(before, after, dir)
	if len(changed) == 0 {
		return nil
	}
	return &Facts{Kind: Config, New: !c.Existed, Keys: changed}
}

// todo judges the steps that a stopped rebase goes on with.
func todo(c Change) *Facts {
	data, err := c.After()
	if err != nil {
		return &Facts{Kind: Todo}
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 0 && (f[0] == "exec" || f[0] == "x") {
			return &Facts{Kind: Todo}
		}
	}
	return nil
}

// strategies are the ways of merging that git brings along. It runs any other one
// as the program git-merge-NAME, and one with a slash as a file of the work tree.
var strategies = []string{"ort", "recursive", "resolve", "octopus", "ours", "subtree"}

// strategy judges the way of merging that a stopped rebase or cherry-pick goes on
// with. One file holds the name alone, the other a line "strategy = NAME".
func strategy(c Change) *Facts {
	data, err := c.After()
	if err != nil {
		return &Facts{Kind: Todo}
	}
	for line := range strings.Lines(string(data)) {
		name := strings.TrimSpace(line)
		if path.Base(c.Path) == "opts" {
			key, value, ok := strings.Cut(name, "=")
			if !ok || !strings.EqualFold(strings.TrimSpace(key), "strategy") {
				continue
			}
			name = strings.Trim(strings.TrimSpace(value), `"`)
		}
		if name != "" && !slices.Contains(strategies, name) {
			return &Facts{Kind: Todo}
		}
	}
	return nil
}

// commondir judges where the git folder of a worktree finds the repository.
func commondir(c Change, rest []string) *Facts {
	data, err := c.After()
	if err == nil && strings.TrimRight(string(data), "\n") == "../.." && len(rest) == 3 && rest[0] == "worktrees" {
		return nil
	}
	return &Facts{Kind: Link}
}

// pointer judges what stands where a git folder may: a link, or a file that says
// where the folder is.
func (g *Guard) pointer(c Change, name string) *Facts {
	switch {
	case c.Type == "" || c.Type == "file" && name != ".git":
		return nil
	case c.Type == "file":
		data, err := c.After()
		if to, ok := g.target(path.Dir(c.Path), string(data)); err == nil && ok && gitAt(normal(to)) >= 0 {
			return nil
		}
	}
	return &Facts{Kind: Link}
}

// target returns where a .git file in dir leads, relative to the root.
func (g *Guard) target(dir, text string) (string, bool) {
	to, ok := strings.CutPrefix(strings.TrimRight(text, "\r\n"), "gitdir: ")
	if !ok {
		return "", false
	}
	if to, ok = g.below(dir, to); !ok || strings.Contains(strings.TrimLeft(to, "./"), "/../") {
		return "", false
	}
	return to, true
}

// below returns a path that stands in dir relative to the root, if it lies there.
func (g *Guard) below(dir, to string) (string, bool) {
	if !path.IsAbs(to) {
		plain := to
		for strings.HasPrefix(plain, "../") {
			plain = plain[len("../"):]
		}
		if path.Clean(plain) != plain && plain != "" && path.Clean(plain) != strings.TrimPrefix(plain, "./") {
			return "", false // what a link in the middle leads to is not known
		}
		to = path.Join(dir, to)
		return to, local(to)
	}
	if path.Clean(to) != to {
		return "", false
	}
	if to == g.dir {
		return ".", true
	}
	return strings.CutPrefix(to, g.dir+"/")
}

// outside judges a change that lies in no folder with the name of a git folder. Git
// takes any folder with a HEAD, objects and refs for a repository.
func (g *Guard) outside(c Change, all []string) *Facts {
	base := all[len(all)-1]
	if f := g.head(c, base); f != nil {
		return f
	}
	if base == "config" && g.bare(path.Dir(c.Path)) {
		return g.config(c, path.Dir(c.Path))
	}
	if i := slices.Index(all, "hooks"); i >= 0 {
		dir := "."
		if i > 0 {
			dir = upTo(c.Path, i)
		}
		if g.bare(dir) {
			return g.hook(c, base, dir)
		}
	}
	return nil
}

// head judges a file that could make a folder a repository.
func (*Guard) head(c Change, base string) *Facts {
	if base != "head" || c.Type == "" {
		return nil
	}
	if c.Type == "file" {
		if data, err := c.After(); err == nil && !isHead(data) {
			return nil
		}
	}
	return &Facts{Kind: Repository}
}

func isHead(data []byte) bool {
	text := strings.TrimRight(string(data), "\n")
	hex := strings.TrimLeft(text, "0123456789abcdefABCDEF") == "" && len(text) >= 40
	return hex || strings.HasPrefix(text, "ref:")
}

func (g *Guard) bare(dir string) bool {
	data, err := g.read(path.Join(dir, "HEAD"))
	return err == nil && isHead(data)
}

// isHook reports whether a path lies in a folder that a repository above it takes
// its hooks from.
func (g *Guard) isHook(name string) bool {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		for _, h := range g.hooksOf(dir) {
			if h == "." || name == h || strings.HasPrefix(name, h+"/") {
				return true
			}
		}
		if dir == "." {
			return false
		}
	}
}

// hooksOf returns the folders below the root that core.hooksPath names in the
// repository whose working tree is dir.
func (g *Guard) hooksOf(dir string) (out []string) {
	if known, ok := g.hooks[dir]; ok {
		return known
	}
	defer func() { g.hooks[dir] = out }()
	for _, name := range g.configs(dir) {
		data, err := g.read(name)
		if err != nil {
			continue
		}
		values, err := parse(string(data))
		if err != nil {
			continue // git does not run with it either
		}
		for _, v := range values["core.hookspath"] {
			if h, ok := g.below(dir, path.Clean(v)); ok {
				out = append(out, h)
			}
		}
	}
	return out
}

// configs returns where the configuration of the repository at dir may stand.
func (g *Guard) configs(dir string) []string {
	git := path.Join(dir, ".git")
	data, err := g.read(git)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		to, ok := g.target(dir, string(data))
		if !ok {
			return nil
		}
		return []string{path.Join(to, "config"), path.Join(to, "config.worktree"), path.Join(to, "../../config")}
	}
	return []string{path.Join(git, "config"), path.Join(git, "config.worktree")}
}
