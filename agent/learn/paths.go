package learn

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
)

// starters are files that other programs run, or that name what they run. A
// person looks at each change, because its content decides.
var starters = []string{
	"package.json", "composer.json", "Makefile", "makefile", "GNUmakefile", "setup.py", "conftest.py", "build.rs", "Jenkinsfile", "justfile",
	"Rakefile", "build.gradle", "build.gradle.kts", "CMakeLists.txt", "configure", "Dockerfile", "docker-compose.yml",
}

// folder is a folder with what calls used of it.
type folder struct {
	path    string
	files   []sample
	folders map[string]*folder
}

// pathRule is a set of paths: those below folders, and single ones.
type pathRule struct {
	below  []string // folders with everything below them; "": the root
	direct bool     // files of the root itself, and not those below it
	exact  []string
	exts   []string // of those below; nil: all
	byWide []sample // covered by below and direct
	byOne  []sample // covered by exact
	left   []sample
}

// learnPaths covers files, the widest folder first.
func learnPaths(samples, bad []sample, o Options) *pathRule {
	root := &folder{folders: map[string]*folder{}}
	for _, s := range samples {
		root.add(s)
	}
	r := &pathRule{}
	root.cover(r, bad, o)
	if len(r.byWide) > 0 {
		exts := map[string]bool{}
		for _, s := range r.byWide {
			exts[s.Access.Resource.Ext] = true
		}
		if len(exts) <= o.Extensions {
			r.exts = slices.Sorted(maps.Keys(exts))
		}
	}
	return r
}

func (f *folder) add(s sample) {
	at := f
	segments := s.Access.Resource.Segments
	for i := range max(len(segments)-1, 0) {
		next := at.folders[segments[i]]
		if next == nil {
			next = &folder{path: path.Join(segments[:i+1]...), folders: map[string]*folder{}}
			at.folders[segments[i]] = next
		}
		at = next
	}
	at.files = append(at.files, s)
}

// special reports whether no wide rule covers a path.
func special(s sample) bool {
	r := s.Access.Resource
	return !near(r.Path) || changes(s) && (dotName.MatchString(r.Path) || slices.Contains(starters, r.Name))
}

func changes(s sample) bool { return s.Access.Action != perm.Read && s.Access.Action != perm.List }

// cover adds the paths of the folder to the rule.
func (f *folder) cover(r *pathRule, bad []sample, o Options) {
	inside := f.all(nil)
	wide := slices.DeleteFunc(slices.Clone(inside), special)
	if f.isWide(o) && !slices.ContainsFunc(bad, f.holds) {
		r.below = append(r.below, f.path)
		r.byWide = append(r.byWide, wide...)
		for _, s := range inside {
			if special(s) {
				r.addExact(s)
			}
		}
		return
	}
	direct := slices.DeleteFunc(slices.Clone(f.files), special)
	if f.path == "" && !outside(f) && distinct(direct) >= o.Files && !slices.ContainsFunc(bad, func(s sample) bool { return f.holds(s) && len(s.Access.Resource.Segments) == 1 }) {
		r.direct = true
		r.byWide = append(r.byWide, direct...)
	}
	for _, s := range f.files {
		if !r.direct || f.path != "" || special(s) {
			r.addExact(s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.folders)) {
		f.folders[name].cover(r, bad, o)
	}
}

func (r *pathRule) addExact(s sample) {
	if changes(s) && slices.Contains(starters, s.Access.Resource.Name) {
		r.left = append(r.left, s)
		return
	}
	r.byOne = append(r.byOne, s)
	if !slices.Contains(r.exact, s.Access.Resource.Path) {
		r.exact = append(r.exact, s.Access.Resource.Path)
	}
}

// isWide reports whether enough of a folder is used to allow all of it.
func (f *folder) isWide(o Options) bool {
	if !near(f.path) || outside(f) && strings.Count(f.path, "/") < 3 {
		return false
	}
	used := 0
	for name := range f.folders {
		if !strings.HasPrefix(name, ".") {
			used++
		}
	}
	return used >= o.Folders || f.path != "" && distinct(slices.DeleteFunc(slices.Clone(f.files), special)) >= o.Files
}

func (f *folder) holds(s sample) bool {
	p := s.Access.Resource.Path
	return (f.path == "" || p == f.path || strings.HasPrefix(p, f.path+"/")) && !special(s)
}

func (f *folder) all(list []sample) []sample {
	list = append(list, f.files...)
	for _, name := range slices.Sorted(maps.Keys(f.folders)) {
		list = f.folders[name].all(list)
	}
	return list
}

func distinct(samples []sample) int {
	seen := map[string]bool{}
	for _, s := range samples {
		seen[s.Access.Resource.Path] = true
	}
	return len(seen)
}

// outside reports whether a folder belongs to the machine outside the roots.
func outside(f *folder) bool {
	all := f.all(nil)
	return len(all) > 0 && all[0].Access.Resource.Root == perm.OutsideRoot
}
