package policyfile

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// ownEngine asks a person before a call changes files of the policy or the
// gateway's configuration, which the next start reads. A root can contain both,
// as they belong to a project.
type ownEngine struct {
	*rego.Engine
	files []string          // absolute paths of the named files and folders
	links []string          // links in these folders when the process started
	roots map[string]string // real paths by name
	asked *atomic.Bool      // a person was asked about a file, so there may be new links
}

// ownFile is a file or a folder that a start reads.
type ownFile struct {
	root  string
	names []string // path below the root; empty: the root
	rules bool     // a folder in which a start reads each policy file
}

// AskBeforeChange returns an engine that asks before a call changes the policy
// at paths or the gateway's configuration inside a root. Roots have the form
// NAME=DIR.
func AskBeforeChange(e *rego.Engine, paths []string, config string, roots []string) perm.Engine {
	kept := ownEngine{Engine: e, roots: map[string]string{}, asked: &atomic.Bool{}}
	for _, p := range paths {
		if !strings.HasPrefix(p, policies.Prefix) {
			kept.files = append(kept.files, p)
		}
	}
	if config != "" {
		kept.files = append(kept.files, config)
	}
	for i, file := range kept.files {
		if whole, err := filepath.Abs(file); err == nil { // otherwise the folder of the process is gone, and so is the file
			kept.files[i] = whole
		}
		kept.links = append(kept.links, linkedBelow(kept.files[i])...)
	}
	if len(kept.files) == 0 {
		return e
	}
	for _, word := range roots {
		name, dir, _ := strings.Cut(word, "=")
		if folder, err := state.RealFolder(dir); err == nil { // otherwise the folder is gone
			dir = folder
		}
		kept.roots[name] = dir
	}
	return kept
}

// own returns the files below a root that a start would read now. A link can
// change after the process starts.
func (o ownEngine) own(root string) (all []ownFile) {
	dir, is := o.roots[root]
	if !is {
		return nil
	}
	files := slices.Concat(o.files, o.links)
	if o.asked.Load() { // otherwise no call of this process has made a new link
		for _, given := range o.files {
			files = append(files, linkedBelow(given)...)
		}
	}
	for _, file := range files {
		for _, at := range linksTo(file) {
			below, err := filepath.Rel(dir, at) // the path is not absolute if there is an error
			if err != nil || !filepath.IsLocal(below) {
				continue
			}
			info, err := os.Lstat(at)
			all = append(all, ownFile{root: root, names: segments(below), rules: err == nil && info.IsDir()})
		}
	}
	return all
}

// linkedBelow returns the links that a start reads as policy files of a folder.
// It returns none if dir is not a folder.
func linkedBelow(dir string) (links []string) {
	_ = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink != 0 && isPolicyFile(name) {
			links = append(links, filepath.Join(dir, filepath.FromSlash(name)))
		}
		return nil // an unreadable file is no policy
	})
	return links
}

// maxLinks limits the links to follow, as Linux does.
const maxLinks = 40

// linksTo returns the absolute path of each link on the way to a file, and of
// the file. No folder of these paths is a link.
func linksTo(file string) (all []string) {
	at, err := filepath.Abs(file)
	for range maxLinks {
		if err != nil {
			return all
		}
		link, rest := firstLink(at)
		if link == "" {
			return append(all, at)
		}
		all = append(all, link)
		to := ""
		if to, err = os.Readlink(link); !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(link), to)
		}
		at = filepath.Join(to, rest)
	}
	return all
}

// firstLink returns the first link on the way to an absolute path, and the
// names after the link.
func firstLink(at string) (link, rest string) {
	above, names := at, []string(nil)
	for ; filepath.Dir(above) != above; above = filepath.Dir(above) {
		names = append(names, filepath.Base(above))
	}
	for i := len(names) - 1; i >= 0; i-- {
		above = filepath.Join(above, names[i])
		if info, err := os.Lstat(above); err == nil && info.Mode()&os.ModeSymlink != 0 {
			slices.Reverse(names)
			return above, filepath.Join(names[len(names)-i:]...)
		}
	}
	return "", ""
}

func segments(below string) []string {
	if below == "." {
		return nil
	}
	return strings.Split(filepath.ToSlash(below), "/")
}

// Decide evaluates the policy. It asks a person if the policy permits a change
// of such a file.
func (o ownEngine) Decide(ctx context.Context, r perm.Request) (perm.Decision, error) {
	d, err := o.Engine.Decide(ctx, r)
	if err != nil || d.Effect() == perm.Deny {
		return d, err
	}
	file, is := o.changes(r)
	if !is {
		return d, nil
	}
	o.asked.Store(true)
	details := d.Details()
	if d.Effect() != perm.Ask {
		details.Reasons = nil
	}
	details.Reasons = append(details.Reasons, perm.Reason{Set: "ask", Text: "remit reads its policy or the configuration of its gateway from " + file.String() + ", and the next start follows it"})
	return perm.NewDecision(perm.Ask, details), nil
}

// String returns the path below the root for people.
func (f ownFile) String() string { return strings.Join(append([]string{f.root}, f.names...), "/") }

// changes returns the file that a request would change or delete. It ignores
// changes that an observed call has already made.
func (o ownEngine) changes(r perm.Request) (file ownFile, is bool) {
	of := r.Access.Resource
	if of.Kind != string(perm.KindFile) || r.Access.Action != perm.Write && r.Access.Action != perm.Delete || r.Purpose == perm.PurposeApply && r.Tool.Coverage == "observed" {
		return ownFile{}, false
	}
	own := o.own(of.Root)
	i := slices.IndexFunc(own, func(f ownFile) bool { return f.concerns(of.Segments, r.Access.Action) })
	if i < 0 {
		return ownFile{}, false
	}
	return own[i], true
}

// concerns compares names like a file system that ignores case, and dots and
// spaces at the end.
func (f ownFile) concerns(names []string, action perm.Action) bool {
	n := min(len(names), len(f.names))
	if !slices.EqualFunc(names[:n], f.names[:n], func(a, b string) bool {
		return strings.EqualFold(strings.TrimRight(a, ". "), strings.TrimRight(b, ". "))
	}) {
		return false
	}
	switch {
	case len(names) < len(f.names):
		return action == perm.Delete
	case len(names) == len(f.names):
		return action == perm.Delete || !f.rules
	}
	last := strings.ToLower(strings.TrimRight(names[len(names)-1], ". "))
	return f.rules && isPolicyFile(last)
}
