// Package gitguard finds the changes of files that make git run code later.
//
// A user's git reads what a program left in a repository: hooks, configuration,
// links to other repositories, and the steps of a stopped rebase. The history
// itself (objects, references, the index) runs nothing.
package gitguard

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Change is one change of a path below a root.
type Change struct {
	Path   string // slash-separated, relative to the root
	Type   string // the type after the change: "file", "dir", "link"; empty: nothing
	Was    string // the type before the change
	Exec   bool   // the change leaves an executable file
	After  func() ([]byte, error)
	Before func() ([]byte, error)
}

// gone reports whether a change leaves no file and no link.
func (c Change) gone() bool { return c.Type == "" || c.Type == "dir" }

// Facts describe the meaning of a change for git.
type Facts struct {
	Kind string
	Keys []string // Config: the keys whose values change
	New  bool     // Config: the repository had none before
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

// MaxSize bounds the bytes of a file that the guard reads. A larger file counts
// as one that runs code.
const MaxSize = 1 << 20

// ErrTooLarge states that a file is larger than MaxSize.
var ErrTooLarge = errors.New("the file is too large to look at")

// Guard judges the changes of one call in one root. It reads the folders above
// each change and the paths in their configuration, and walks nothing.
type Guard struct {
	dir     string // path of the root, absolute
	placed  bool   // the path of the root is known
	files   Files
	removed map[string]bool
	heads   map[string]bool          // whether git treats the folder at a path as a repository
	at      map[string]*guardedPaths // the places that the repository at a path leads to
	steps   map[string]step          // cached files by absolute path
}

// Files is a root before the changes. Each function returns an error that is
// fs.ErrNotExist for a missing name.
type Files struct {
	Read func(name string) ([]byte, error)
	List func(name string) ([]string, error)          // returns the names in a folder
	Link func(name string) (target string, err error) // returns "" if the name is not that of a symbolic link

	// Outside is Link for absolute names outside of the root. It reports
	// whether the name is another name of the root. It can be nil.
	Outside func(name string) (target string, root bool, err error)
	Home    string // the home folder of the user, absolute; can be empty
}

// New returns a Guard for all changes of a call in the root at dir. The path is
// absolute and contains no link. It is empty if it is unknown.
func New(dir string, files Files, all []Change) *Guard {
	g := &Guard{
		dir: dir, placed: dir != "", files: files,
		removed: map[string]bool{}, heads: map[string]bool{}, at: map[string]*guardedPaths{}, steps: map[string]step{},
	}
	if !g.placed {
		g.dir = "/\x00" // no name leads there
	}
	for _, c := range all {
		if c.gone() {
			g.removed[c.Path] = true
		}
	}
	return g
}

// Facts returns the meaning of a change for git, or nil if git runs nothing
// because of it.
func (g *Guard) Facts(c Change) *Facts {
	if c.gone() && (c.Was == "" || c.Was == "dir") { // the entries of a folder are judged separately
		return nil
	}
	if f := g.place(c); f != nil {
		return f
	}
	all := normal(c.Path)
	if at := len(all) - 1; isGit(all[at]) {
		if f := g.pointer(c, all[at]); f != nil {
			return f
		}
	}
	return g.folders(c, all)
}

// folders judges a change by each git folder that contains it: by name, and by
// content.
func (g *Guard) folders(c Change, all []string) *Facts {
	plain, branch := true, false
	for i := range all {
		switch {
		case i > 0 && isGit(all[i-1]):
			plain = false
		case !dirNames[all[i]] || !g.bare(upTo(c.Path, i)):
			continue
		}
		if named(all[i:]) { // a branch may be called config or hooks/x
			branch = true
			continue
		}
		if f := g.inside(c, all[i:], path.Dir(c.Path), true); f != nil {
			return f
		}
	}
	if plain || branch {
		return g.head(c, all[len(all)-1])
	}
	return nil
}

// isGit reports whether a name is that of a git folder.
func isGit(name string) bool { return strings.HasSuffix(name, ".git") }

// dirNames are the names in a git folder that determine what git runs. A change
// outside of them needs no check of the parent folders.
var dirNames = map[string]bool{
	"config": true, "config.worktree": true, "hooks": true, "info": true, "commondir": true, "remotes": true, "branches": true,
	"rebase-merge": true, "rebase-apply": true, "sequencer": true, "worktrees": true, "modules": true,
}

// normal returns the segments of a path as a file system reads them that
// ignores case, invisible characters, and trailing dots and spaces.
func normal(name string) []string {
	all := strings.Split(name, "/")
	for i, s := range all {
		all[i] = strings.TrimRight(fold(s), ". ")
		if all[i] == "git~1" {
			all[i] = ".git"
		}
	}
	return all
}

// fold returns a name as file systems without case compare it. It folds letters
// to Latin ones, and removes invisible characters.
func fold(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		s = strings.ReplaceAll(strings.ToUpper(strings.Map(visible, s)), "\ufb01", "fi")
	}
	return strings.ToLower(s)
}

func visible(r rune) rune {
	if unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
		return -1
	}
	return r
}

// gitAt returns the index of the innermost git folder, or -1.
func gitAt(all []string) int {
	for i := len(all) - 1; i >= 0; i-- {
		if isGit(all[i]) {
			return i
		}
	}
	return -1
}

// inside judges a change by its path below a git folder. Relative values of its
// configuration start at dir. If own is false, the folder does not contain the
// change: git reaches it by a link or a value.
func (g *Guard) inside(c Change, rest []string, dir string, own bool) *Facts {
	base := rest[len(rest)-1]
	switch hook := slices.Index(rest, "hooks"); {
	case c.Type == "link":
		return &Facts{Kind: Link}
	case base == "config" || base == "config.worktree":
		return g.config(c, dir, own)
	case hook >= 0:
		above := strings.Count(c.Path, "/") + 1 - len(rest) + hook
		if own && c.gone() && g.removed[path.Join(upTo(c.Path, above), "HEAD")] || strings.HasSuffix(base, ".sample") {
			return nil
		}
		return &Facts{Kind: Hook}
	case base == "commondir":
		return g.commondir(c)
	case c.gone():
		return nil
	case base == "attributes" && len(rest) > 1 && rest[len(rest)-2] == "info":
		return &Facts{Kind: Attributes}
	case base == "git-rebase-todo":
		return todo(c)
	case base == "strategy" || base == "opts" && len(rest) > 1 && rest[len(rest)-2] == "sequencer":
		return strategy(c, base)
	case rest[0] == "remotes" || rest[0] == "branches": // git's older form of remotes
		return &Facts{Kind: Config, Keys: []string{"remote." + base + ".url"}}
	}
	return nil
}

// named reports whether a path below a git folder is the name of a branch or a
// tag.
func named(rest []string) bool {
	if rest[0] == "logs" {
		rest = rest[1:]
	}
	return len(rest) > 2 && rest[0] == "refs" && (rest[1] == "heads" || rest[1] == "tags")
}

func upTo(name string, segments int) string {
	return strings.Join(strings.Split(name, "/")[:segments], "/")
}

func (g *Guard) config(c Change, dir string, own bool) *Facts {
	fresh := own && c.Was != "file" && fold(path.Base(c.Path)) != "config.worktree" // an old one can have others beside it
	before, after := "", ""
	for _, one := range []struct {
		there bool
		read  func() ([]byte, error)
		to    *string
	}{{c.Was == "file", c.Before, &before}, {c.Type == "file", c.After, &after}} {
		if !one.there {
			continue
		}
		data, err := one.read()
		if err != nil {
			return &Facts{Kind: Config, New: fresh, Keys: []string{unreadable}}
		}
		*one.to = string(data)
	}
	if own && c.gone() && g.removed[path.Join(dir, "HEAD")] && !g.names(dir, before) {
		return nil // the whole repository is removed
	}
	changed := keys(before, after, func(values []string) bool { return g.within(values, dir) })
	if len(changed) == 0 {
		return nil
	}
	return &Facts{Kind: Config, New: fresh, Keys: changed}
}

// todo judges the remaining steps of a stopped rebase.
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

// strategies are the merge strategies of git. Git runs any other one as the
// program git-merge-NAME, and one with a slash as a file of the work tree.
var strategies = []string{"ort", "recursive", "resolve", "octopus", "ours", "subtree"}

// strategy judges the merge strategy of a stopped rebase or cherry-pick. One
// file holds only the name, the other a line "strategy = NAME".
func strategy(c Change, base string) *Facts {
	data, err := c.After()
	if err != nil {
		return &Facts{Kind: Todo}
	}
	for line := range strings.Lines(string(data)) {
		name := strings.TrimSpace(line)
		if base == "opts" {
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

// commondir judges where the git folder of a worktree finds its repository,
// which is two folders above it. A revert can restore a deleted file.
func (g *Guard) commondir(c Change) *Facts {
	read := c.After
	if c.gone() {
		read = c.Before
	}
	data, err := read()
	worktrees := path.Dir(path.Dir(c.Path))
	above := path.Dir(worktrees)
	if err == nil && strings.TrimRight(string(data), "\n") == "../.." && fold(path.Base(worktrees)) == "worktrees" && (gitAt(normal(above)) >= 0 || g.bare(above)) {
		return nil
	}
	return &Facts{Kind: Link}
}

// pointer judges a link in place of a git folder, or a file with the path of
// one.
func (g *Guard) pointer(c Change, name string) *Facts {
	switch {
	case c.gone() && !g.places(path.Dir(c.Path)).any() || c.Type == "file" && name != ".git":
		return nil
	case c.Type == "file":
		data, err := c.After()
		if to, ok := g.target(path.Dir(c.Path), string(data)); err == nil && ok && gitAt(normal(to)) >= 0 {
			return nil
		}
	}
	return &Facts{Kind: Link}
}

// target returns the target of a .git file in dir, relative to the root. The
// path must contain no link, and no place before a ".." where a link can appear
// later.
func (g *Guard) target(dir, text string) (string, bool) {
	to, ok := strings.CutPrefix(strings.TrimRight(text, "\r\n"), "gitdir: ")
	if !ok || strings.Contains(strings.TrimLeft(to, "./")+"/", "/../") {
		return "", false
	}
	t := g.follow(g.abs(dir), to)
	end, ok := g.below(t.end)
	return end, ok && !t.lost && !t.links
}

// head judges a file that makes a folder a repository. Both directions count,
// because a revert restores a HEAD without approval.
func (*Guard) head(c Change, base string) *Facts {
	if base != "head" {
		return nil
	}
	is := func(kind string, read func() ([]byte, error)) bool {
		if kind != "file" {
			return kind == "link"
		}
		data, err := read()
		return err != nil || isHead(data)
	}
	if is(c.Was, c.Before) == is(c.Type, c.After) {
		return nil
	}
	return &Facts{Kind: Repository}
}

// isHead reports whether git treats a folder with such a HEAD as a repository.
// Git ignores text after a commit's name.
func isHead(data []byte) bool {
	const name = 40
	return bytes.HasPrefix(data, []byte("ref:")) || len(data) >= name && len(bytes.Trim(data[:name], "0123456789abcdefABCDEF")) == 0
}

// bare reports whether git treats the folder at a path as a repository. It is
// true if the HEAD cannot be read.
func (g *Guard) bare(dir string) bool {
	is, known := g.heads[dir]
	if !known {
		data, err := g.files.Read(path.Join(dir, "HEAD"))
		is = err == nil && isHead(data) || err != nil && !errors.Is(err, fs.ErrNotExist)
		g.heads[dir] = is
	}
	return is
}
