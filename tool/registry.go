package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
)

// Registry is a set of tools that cannot change: a call sees one registry from
// its first step to its last. The zero Registry has no tools.
type Registry struct {
	tools map[string]Tool
	names []string // sorted
}

// NewRegistry makes a registry. Zero tools, duplicate names and names that a
// reader could take for one another are refused.
func NewRegistry(tools ...Tool) (Registry, error) {
	r := Registry{tools: map[string]Tool{}}
	seen := map[string]string{}
	for i, t := range tools {
		if t.IsZero() {
			return Registry{}, fmt.Errorf("tool %d of %d is the zero Tool; make it with Create or FromSpec", i+1, len(tools))
		}
		name := t.Name()
		like := strings.ReplaceAll(name, "_", "")
		if other, taken := seen[like]; taken {
			if other == name {
				return Registry{}, fmt.Errorf("two tools are named %q", name)
			}
			return Registry{}, fmt.Errorf("tools %q and %q could be taken for one another; rename one", other, name)
		}
		seen[like] = name
		r.tools[name] = t
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
	return r, nil
}

// Get finds a tool by its exact name.
func (r Registry) Get(name string) (Tool, bool) {
	t, ok := r.tools[name]
	return t, ok
}

// Names lists the tools in alphabetical order.
func (r Registry) Names() []string { return slices.Clone(r.names) }

// Grant is the union of what the tools need: what a root session holds unless
// it is given less.
func (r Registry) Grant() (perm.Set, error) {
	var all []perm.ResourceAccess
	for _, name := range r.names {
		all = append(all, r.tools[name].Grant()...)
	}
	return perm.NewSet(all...)
}

// undo finds the declaration that takes a call back: by name and undo version.
func (r Registry) undo(name, undoVersion string) (Tool, bool) {
	t, ok := r.tools[name]
	if !ok || t.t.spec.UndoVersion != undoVersion {
		return Tool{}, false
	}
	return t, true
}
