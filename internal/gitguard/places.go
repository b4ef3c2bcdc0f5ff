package gitguard

import (
	"path"
	"slices"
	"strings"
)

// places are what a repository leads git to below the root, beside its git folder.
type places struct {
	repository bool
	aliases    []alias
	passed     map[string]string // the names on the ways there, and the kind of a link in their place
	lost       []alias           // what cannot be followed: at is its last name alone
	unknown    bool              // not all of the configuration can be read here
	seen       map[string]bool   // the git folders that were looked at, by absolute name
}

// alias is another name for what git reaches: at, below the root and as normal
// writes it, counts like as, below the git folder at dir.
type alias struct {
	at, as, dir string
}

// any reports whether the repository leads to anything that is judged for it alone.
func (p *places) any() bool { return len(p.aliases) > 0 }

const (
	mostConfigs = 32 // files of configuration of one repository that are read
	mostFolders = 64 // git folders of one repository, its worktrees and submodules
	mostDeep    = 4  // slashes in the name of a submodule
)

// hookNames are the files that git runs in a folder of hooks. The name update is not
// among them: too many scripts have it.
var hookNames = []string{
	"applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit", "post-index-change",
	"post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit",
	"pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout", "reference-transaction", "sendemail-validate",
}

// linkNames are the names in a git folder that a link may stand for.
var linkNames = []string{
	"config", "config.worktree", "hooks", "info", "info/attributes", "remotes", "branches", "commondir",
	"rebase-merge", "rebase-merge/git-rebase-todo", "rebase-merge/strategy", "rebase-apply", "sequencer", "sequencer/opts", "worktrees", "modules",
}

// place judges a change by the repositories above it, which can lead git to any
// folder of hooks and to any file of configuration. If not all of their
// configuration is known, or a repository lies above the root, names decide.
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

// reached judges a change under each name by which one repository leads git to it.
// A link that comes, goes or changes on the way leads git elsewhere.
func (g *Guard) reached(c Change, name, base string, p *places) *Facts {
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

// plain returns a name as normal writes it.
func plain(name string) string {
	if name == "." {
		return name
	}
	return strings.Join(normal(name), "/")
}

// under returns what follows a folder in a name, which is nothing for the folder itself.
func under(name, dir string) (string, bool) {
	switch dir {
	case name:
		return "", true
	case ".":
		return name, true
	}
	return strings.CutPrefix(name, dir+"/")
}
