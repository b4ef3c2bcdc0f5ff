package gitguard

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// places returns the places of the repository whose working tree or git folder
// is dir. They are empty if there is none.
func (g *Guard) places(dir string) *guardedPaths {
	if known, ok := g.at[dir]; ok {
		return known
	}
	p := &guardedPaths{passed: map[string]string{}, seen: map[string]bool{}}
	g.at[dir] = p
	work, git := g.abs(dir), path.Join(dir, ".git")
	t := g.follow(work, ".git")
	if name, ok := g.below(t.end); ok {
		git = name
	}
	var data []byte
	err := fs.ErrNotExist
	if !t.gone {
		data, err = g.files.Read(git)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && !t.lost:
		if g.bare(dir) {
			g.repository(p, work, trail{end: work})
		}
		return p
	case err == nil && !t.lost: // a file with the path of the folder
		to, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
		t = g.follow(work, to)
		t.lost = t.lost || !ok
	}
	p.repository = true
	g.repository(p, work, t)
	return p
}

// repository adds the places of a git folder, for a working tree at an absolute
// path.
func (g *Guard) repository(p *guardedPaths, work string, t trail) {
	git, ok := g.enter(p, t, "")
	if !ok || p.seen[t.end] {
		return
	}
	if p.seen[t.end] = true; len(p.seen) > mostFolders {
		p.unknown = true
		return
	}
	r := reading{g: g, p: p, git: git, bases: []string{work, t.end}}
	common := t.end
	data, err := g.files.Read(path.Join(git, "commondir"))
	switch {
	case err == nil:
		to := g.follow(t.end, strings.TrimRight(string(data), "\r\n"))
		if _, ok := g.enter(p, to, ""); ok {
			common = to.end
		}
	case !errors.Is(err, fs.ErrNotExist):
		p.unknown = true
	case path.Base(path.Dir(t.end)) == "worktrees": // a revert can restore the file
		common = path.Dir(path.Dir(t.end))
	}
	r.folder(t.end)
	if first := common == t.end || !p.seen[common]; first {
		p.seen[common] = true
		r.folder(common)
		g.others(p, common)
	}
	r.bases = append(r.bases, common)
	r.configs = append(r.configs, config{common, "config"}, config{t.end, "config.worktree"})
	r.collect()
}

// enter adds the path to a git folder, or to a file in it, and returns its end.
// If git reaches the file by another name than that in the folder, enter adds
// an alias.
func (g *Guard) enter(p *guardedPaths, t trail, as string) (string, bool) {
	p.pass(t, Link)
	end, ok := g.below(t.end)
	if t.lost || !ok {
		p.unknown = true
		return "", false
	}
	if gitAt(normal(end)) < 0 && !g.bare(end) {
		p.add(end, as, end)
	}
	return end, true
}

// pass records the names on a path, with the kind of a link in their place.
func (p *guardedPaths) pass(t trail, kind string) {
	for _, name := range t.passed {
		if key := plain(name); p.passed[key] == "" {
			p.passed[key] = kind
		}
	}
}

func (p *guardedPaths) add(end, as, dir string) {
	a := alias{plain(end), as, dir}
	if !slices.Contains(p.aliases, a) {
		p.aliases = append(p.aliases, a)
	}
}

// others adds the places of the worktrees and the submodules of a repository.
func (g *Guard) others(p *guardedPaths, common string) {
	for _, git := range g.list(p, g.follow(common, "worktrees")) {
		work := git
		if name, ok := g.below(git.end); ok {
			if data, err := g.files.Read(path.Join(name, "gitdir")); err == nil {
				work = g.follow(git.end, path.Dir(strings.TrimRight(string(data), "\r\n")))
			}
		}
		g.repository(p, work.end, git)
	}
	g.modules(p, g.follow(common, "modules"), mostDeep)
}

// modules adds the places of submodules. The name of one can contain slashes.
func (g *Guard) modules(p *guardedPaths, folder trail, deep int) {
	for _, git := range g.list(p, folder) {
		name, ok := g.below(git.end)
		_, err := g.files.Read(path.Join(name, "config"))
		switch {
		case !ok || git.lost || g.bare(name) || !errors.Is(err, fs.ErrNotExist):
			g.repository(p, git.end, git)
		case deep == 0:
			p.unknown = true
		default:
			g.modules(p, git, deep-1)
		}
	}
}

// list returns the trails of the entries in a folder of git folders.
func (g *Guard) list(p *guardedPaths, folder trail) []trail {
	name, ok := g.below(folder.end)
	if !ok || folder.lost {
		p.unknown = true
		return nil
	}
	all, err := g.files.List(name)
	p.unknown = p.unknown || err != nil && !errors.Is(err, fs.ErrNotExist) || len(all) > mostFolders
	var out []trail
	for _, one := range all[:min(len(all), mostFolders)] {
		out = append(out, g.follow(folder.end, one))
	}
	return out
}

// reading is one repository whose configuration is being read.
type reading struct {
	g       *Guard
	p       *guardedPaths
	git     string   // the git folder, below the root
	bases   []string // folders at which relative names can start
	configs []config
	hooks   []string
	attrs   []string
}

// config is a configuration file by the name with which git opens it. Includes
// start at the folder of that name, even if it is a link.
type config struct{ folder, name string }

// folder checks the links in a git folder.
func (r *reading) folder(git string) {
	for _, name := range linkNames {
		kind := Link
		if name == "hooks" {
			kind = Hook
		}
		if t := r.g.follow(git, name); t.links || t.lost {
			r.lead(t, name, kind)
		}
	}
	r.hookFolder(r.g.follow(git, "hooks"))
}

// lead adds the trail of a name in a git folder.
func (r *reading) lead(t trail, as, kind string) {
	r.p.pass(t, kind)
	end, ok := r.g.below(t.end)
	if t.lost || !ok {
		r.unknown(t.name, as)
		return
	}
	r.p.add(end, as, r.git)
}

// hookFolder follows the links in a folder of hooks.
func (r *reading) hookFolder(folder trail) {
	if folder.lost {
		return
	}
	for _, name := range append([]string{"update"}, hookNames...) {
		if t := r.g.follow(folder.end, name); t.links || t.lost {
			r.lead(t, "hooks/"+name, Hook)
		}
	}
}

// collect reads the configuration files and their includes, and adds the paths
// that they name.
func (r *reading) collect() {
	for i := 0; i < len(r.configs); i++ {
		if i == mostConfigs {
			r.p.unknown = true
			break
		}
		c := r.configs[i]
		t := r.g.follow(c.folder, c.name)
		name, ok := r.g.below(t.end)
		if !ok || t.lost {
			r.p.unknown = true
			continue
		}
		data, err := r.g.files.Read(name)
		if err != nil {
			r.p.unknown = r.p.unknown || !errors.Is(err, fs.ErrNotExist)
			continue
		}
		values, err := parse(string(data))
		if err != nil {
			continue // git does not run with it either
		}
		r.values(c.folder, values)
	}
	r.named()
}

// values adds the paths that one configuration file names. The argument folder
// is where git opens it.
func (r *reading) values(folder string, values map[string][]string) {
	for key, all := range values {
		for _, value := range all {
			switch {
			case key == "core.hookspath":
				r.hooks = append(r.hooks, r.expand(value, ""))
			case key == "core.attributesfile":
				r.attrs = append(r.attrs, r.expand(value, "info/attributes"))
			case key == "core.worktree":
				t := r.g.follow(r.g.abs(r.git), value)
				r.p.unknown = r.p.unknown || t.lost
				r.bases = append(r.bases, t.end)
			case key == "include.path", strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path"):
				r.include(folder, r.expand(value, "config"))
			}
		}
	}
}

// include adds one more configuration file.
func (r *reading) include(folder, value string) {
	if value == "" {
		return
	}
	r.lead(r.g.follow(folder, value), "config", Link)
	dir, name := path.Split(value)
	if c := (config{r.g.follow(folder, dir).end, name}); !slices.Contains(r.configs, c) {
		r.configs = append(r.configs, c)
	}
}

// expand returns a value with the home folder in place of "~". Git can run for
// another user with another home, so expand also adds the rest of the name for
// any folder.
func (r *reading) expand(value, as string) string {
	if !strings.HasPrefix(value, "~") && !strings.HasPrefix(value, "%(") {
		return value
	}
	r.unknown(value, as)
	rest, ok := strings.CutPrefix(value, "~/")
	if !ok || r.g.files.Home == "" {
		return ""
	}
	return path.Join(r.g.files.Home, "/") + "/" + rest
}

// unknown records a name that cannot be resolved.
func (r *reading) unknown(name, as string) {
	r.p.unknown = true
	if as != "" && !strings.HasPrefix(as, "hooks") {
		r.p.lost = append(r.p.lost, alias{normal(path.Base(name))[0], as, r.git})
	}
}

// named adds the folders of hooks and the files of attributes in values. A
// relative name starts at the working tree, or at the git folder if git works
// there.
func (r *reading) named() {
	for _, base := range r.bases {
		for _, name := range r.hooks {
			if name != "" {
				t := r.g.follow(base, name)
				r.lead(t, "hooks", Hook)
				r.hookFolder(t)
			}
		}
		for _, name := range r.attrs {
			if name != "" {
				r.lead(r.g.follow(base, name), "info/attributes", Link)
			}
		}
	}
}

// names reports whether a configuration that git reads in dir names a path
// below the root.
func (g *Guard) names(dir, text string) bool {
	values, err := parse(text)
	p := &guardedPaths{passed: map[string]string{}}
	r := reading{g: g, p: p, git: dir, bases: []string{g.abs(path.Dir(dir)), g.abs(dir)}}
	r.values(g.abs(dir), values)
	r.named()
	return err != nil || p.any() || len(p.lost) > 0
}
