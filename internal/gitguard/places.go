package gitguard

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// places are what the configuration of a repository names below the root.
type places struct {
	repository bool
	hooks      []string // folders of hooks
	configs    []string // files of configuration that others include
	unknown    bool     // not all of the configuration can be read here
}

func (p *places) any() bool { return len(p.hooks)+len(p.configs) > 0 }

// mostConfigs is how many files of configuration of one repository are read.
const mostConfigs = 32

// hookNames are the files that git runs in a folder of hooks. The name update is not
// among them: too many scripts have it.
var hookNames = []string{
	"applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit", "post-index-change",
	"post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit",
	"pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout", "reference-transaction", "sendemail-validate",
}

// place judges a change by the repositories above it, whose configuration can name
// any folder as that of hooks, and any file as one more configuration. If their
// configuration cannot be read, or lies above the root, the name of a hook decides.
func (g *Guard) place(c Change) *Facts {
	known, unknown := false, false
	for dir := c.Path; dir != "."; {
		dir = path.Dir(dir)
		p := g.places(dir)
		if f := g.named(c, p); f != nil {
			return f
		}
		known, unknown = known || p.repository, unknown || p.unknown
	}
	if c.Type == "file" && c.Exec && (!known || unknown) && slices.Contains(hookNames, fold(path.Base(c.Path))) {
		return &Facts{Kind: Hook}
	}
	all := normal(c.Path)
	if base := all[len(all)-1]; c.Type == "file" && (base == ".gitconfig" || base == "config" && strings.HasSuffix("/"+strings.Join(all, "/"), "/.config/git/config")) {
		return g.config(c, path.Dir(c.Path))
	}
	return nil
}

// named judges a change of what the configuration of one repository names. A link
// above such a place leads git to another one.
func (g *Guard) named(c Change, p *places) *Facts {
	for _, h := range p.hooks {
		if h == "." || c.Path == h || strings.HasPrefix(c.Path, h+"/") || c.Type == "link" && strings.HasPrefix(h, c.Path+"/") {
			return &Facts{Kind: Hook}
		}
	}
	for _, f := range p.configs {
		switch {
		case c.Type == "link" && strings.HasPrefix(f, c.Path+"/"):
			return &Facts{Kind: Link}
		case c.Path == f:
			if changed := g.config(c, path.Dir(c.Path)); changed != nil {
				return changed
			}
		}
	}
	return nil
}

// places returns what the configuration of the repository whose working tree is dir
// names. Where there is none, that is nothing.
func (g *Guard) places(dir string) *places {
	if known, ok := g.at[dir]; ok {
		return known
	}
	p := &places{}
	g.at[dir] = p
	git := path.Join(dir, ".git")
	data, err := g.files.Read(git)
	var configs, hooks []string
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p
	case err != nil: // a folder, or a link to one
		git = g.follow(p, git)
		hooks = []string{path.Join(git, "hooks")}
		configs = []string{path.Join(git, "config"), path.Join(git, "config.worktree")}
	default:
		to, ok := g.target(dir, string(data))
		if p.unknown = !ok; ok {
			hooks = []string{path.Join(to, "hooks")}
			configs = []string{path.Join(to, "config"), path.Join(to, "config.worktree")}
			if whole := path.Join(to, "../.."); path.Base(path.Dir(to)) == "worktrees" {
				hooks, configs = append(hooks, path.Join(whole, "hooks")), append(configs, path.Join(whole, "config"))
			}
		}
	}
	p.repository = true
	g.collect(p, dir, configs)
	for _, folder := range append(hooks, p.hooks...) {
		g.followHooks(p, folder)
	}
	return p
}

// followHooks adds the folder that a folder of hooks is a link to, and the files that
// the links in it lead to.
func (g *Guard) followHooks(p *places, folder string) {
	to := g.follow(p, folder)
	if to != folder {
		p.hooks = append(p.hooks, to)
	}
	for _, name := range append([]string{"update"}, hookNames...) {
		hook := path.Join(to, name)
		if file := g.follow(p, hook); file != hook {
			p.hooks = append(p.hooks, file)
		}
	}
}

// follow returns where a name leads that may be a symbolic link, and the name itself
// if it is none or leads out of the root. Links to links are followed for a while.
func (g *Guard) follow(p *places, name string) string {
	const most = 8
	for range most {
		to, err := g.files.Link(name)
		if err != nil {
			return name
		}
		next, ok := g.below(path.Dir(name), path.Clean(to))
		if !ok {
			p.unknown = true
			return name
		}
		name = next
	}
	p.unknown = true
	return name
}

// collect reads files of configuration and those that they include.
func (g *Guard) collect(p *places, dir string, configs []string) {
	for i := 0; i < len(configs); i++ {
		if i == mostConfigs {
			p.unknown = true
			return
		}
		if to := g.follow(p, configs[i]); to != configs[i] {
			configs[i] = to
			p.configs = append(p.configs, to)
		}
		data, err := g.files.Read(configs[i])
		if err != nil {
			p.unknown = p.unknown || !errors.Is(err, fs.ErrNotExist)
			continue
		}
		values, err := parse(string(data))
		if err != nil {
			continue // git does not run with it either
		}
		for key, named := range values {
			for _, v := range named {
				g.name(p, dir, configs[i], key, v)
			}
		}
		for _, one := range p.configs {
			if !slices.Contains(configs, one) {
				configs = append(configs, one)
			}
		}
	}
}

// name adds what one variable names. What stands in the home folder is not known.
func (g *Guard) name(p *places, dir, config, key, value string) {
	hooks := key == "core.hookspath"
	includes := key == "include.path" || strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")
	if !hooks && !includes {
		return
	}
	if strings.HasPrefix(value, "~") || strings.HasPrefix(value, "%(") {
		p.unknown = true
		return
	}
	from := dir
	if !hooks {
		from = path.Dir(config)
	}
	to, ok := g.below(from, path.Clean(value))
	switch {
	case ok && hooks:
		p.hooks = append(p.hooks, to)
	case ok && !slices.Contains(p.configs, to):
		p.configs = append(p.configs, to)
	}
}

// names reports whether a configuration that git reads in dir names anything below
// the root.
func (g *Guard) names(dir, text string) bool {
	values, err := parse(text)
	p := &places{}
	for key, named := range values {
		for _, v := range named {
			g.name(p, path.Dir(dir), path.Join(dir, "config"), key, v)
		}
	}
	return err != nil || p.any()
}
