package gitguard

import (
	"path"
	"slices"
	"strings"
)

// guardedPaths are the paths below the root to which a repository leads git, beside
// its git folder.
type guardedPaths struct {
	repository bool
	aliases    []alias
	passed     map[string]string // the names on the paths, with the kind of a link in their place
	lost       []alias           // unresolvable names: at is the last name only
	unknown    bool              // a part of the configuration is unreadable here
	seen       map[string]bool   // the git folders that were read, by absolute path
}

// alias is another name for a file that git reads. The path at, below the root
// and normalized, counts as the path as, below the git folder at dir.
type alias struct {
	at, as, dir string
}

// any reports whether the repository leads to any path of its own.
func (p *guardedPaths) any() bool { return len(p.aliases) > 0 }

const (
	mostConfigs = 32 // bound of the configuration files of one repository
	mostFolders = 64 // bound of the git folders of one repository, its worktrees and submodules
	mostDeep    = 4  // bound of the slashes in the name of a submodule
)

// hookNames are the files that git runs in a folder of hooks. They exclude the
// name update, because too many scripts have it.
var hookNames = []string{
	"applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit", "post-index-change",
	"post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit",
	"pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout", "reference-transaction", "sendemail-validate",
}

// linkNames are the names in a git folder that a link may replace.
var linkNames = []string{
	"config", "config.worktree", "hooks", "info", "info/attributes", "remotes", "branches", "commondir",
	"rebase-merge", "rebase-merge/git-rebase-todo", "rebase-merge/strategy", "rebase-apply", "sequencer", "sequencer/opts", "worktrees", "modules",
}

// place judges a change by the repositories above it, which can lead git to any
// folder of hooks and any configuration file. Names decide if a part of their
// configuration is unknown, or if a repository lies above the root.
func (g *Guard) place(c Change) *Facts {
	all := normal(c.Path)
	name, base := strings.Join(all, "/"), all[len(all)-1]
	known, unknown := false, false
	for dir := c.Path; dir != "."; {
		dir = path.Dir(dir)
		p := g.places(dir)
		if f := g.reached(c, name, base, p); f != nil {
			return f
		}
		known, unknown = known || p.repository, unknown || p.unknown
	}
	if c.Type == "file" && c.Exec && slices.Contains(hookNames, base) && (!known || unknown || g.repositoryAbove()) {
		return &Facts{Kind: Hook}
	}
	if c.Type == "file" && (base == ".gitconfig" || base == "config" && strings.HasSuffix("/"+name, "/.config/git/config")) {
		return g.config(c, path.Dir(c.Path), true)
	}
	return nil
}

// reached judges a change under each name by which one repository leads git to
// it. An added, removed or changed link on the path leads git elsewhere.
func (g *Guard) reached(c Change, name, base string, p *guardedPaths) *Facts {
	if kind := p.passed[name]; kind != "" && (c.Type == "link" || c.Was == "link") {
		return &Facts{Kind: kind}
	}
	for _, a := range p.aliases {
		if rest, ok := under(name, a.at); ok {
			if f := g.judge(c, path.Join(a.as, rest), a.dir); f != nil {
				return f
			}
		}
	}
	for _, a := range p.lost {
		if base == a.at {
			if f := g.judge(c, a.as, a.dir); f != nil {
				return f
			}
		}
	}
	return nil
}

// judge judges a change under a name below the git folder at dir.
func (g *Guard) judge(c Change, as, dir string) *Facts {
	all := strings.Split(as, "/")
	if named(all) {
		return nil
	}
	return g.inside(c, all, dir, false)
}

// plain returns the normalized form of a name.
func plain(name string) string {
	if name == "." {
		return name
	}
	return strings.Join(normal(name), "/")
}

// under returns the rest of a name after a folder, or "" for the folder itself.
func under(name, dir string) (string, bool) {
	switch dir {
	case name:
		return "", true
	case ".":
		return name, true
	}
	return strings.CutPrefix(name, dir+"/")
}
