package tool

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/remit-dev/remit/internal/suggest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/record"
)

// Registry is an immutable set of tools: a call uses one registry from its
// first step to its last. The zero Registry has no tools.
//
// A registry can hold several versions of a name. A name alone selects the
// newest version, name@version selects that version. Semantic versioning orders
// the versions if all of them follow it ("1.2.0" or "v1.2.0"). Otherwise the
// last one given is the newest.
type Registry struct {
	tools   map[string][]Tool // by name, newest first
	names   []string          // sorted
	retired map[retiredKey]Tool
	grant   func() (perm.Set, error) // once; nil: no tools
}

// retiredKey identifies a retired tool. Reverting needs only the newest
// declaration for each key.
type retiredKey struct{ name, version, undoVersion string }

// NewRegistry makes a registry. It returns an error for zero tools, for the
// same version of a name twice, and for names or versions that a reader could
// confuse.
func NewRegistry(tools ...Tool) (Registry, error) {
	r := Registry{tools: map[string][]Tool{}}
	seen := map[string]string{}
	for i, t := range tools {
		if t.IsZero() {
			return Registry{}, fmt.Errorf("tool %d of %d is the zero Tool; make it with Create or FromSpec", i+1, len(tools))
		}
		name := t.Name()
		like := strings.ReplaceAll(name, "_", "")
		if other, taken := seen[like]; taken && other != name {
			return Registry{}, fmt.Errorf("tools %q and %q could be taken for one another; rename one", other, name)
		}
		seen[like] = name
		r.tools[name] = append(r.tools[name], t)
	}
	r.names = slices.Sorted(maps.Keys(r.tools))
	for _, name := range r.names {
		if err := newestFirst(name, r.tools[name]); err != nil {
			return Registry{}, err
		}
	}
	r.grant = sync.OnceValues(func() (perm.Set, error) {
		var all []perm.ResourceAccess
		for _, t := range r.All() {
			all = append(all, t.RequiredAccesses()...)
		}
		return perm.NewSet(all...)
	})
	return r, nil
}

// Get returns the tool that Find returns, and whether there is one.
func (r Registry) Get(asked string) (Tool, bool) {
	t, err := r.Find(asked)
	return t, err == nil
}

// Find returns the tool that a call names, by its exact name or by
// name@version. A tool without a version matches any version. The error lists
// the tools that exist.
func (r Registry) Find(asked string) (Tool, error) {
	name, version, exact := strings.Cut(asked, "@")
	all, ok := r.tools[name]
	switch {
	case !ok:
		return Tool{}, r.unknown(name)
	case !exact:
		return all[0], nil
	case version == "":
		return Tool{}, fmt.Errorf("%q names no version; valid are %s, or %q for the newest", asked, versions(all), name)
	case all[0].look().Version == "":
		return all[0], nil
	}
	for _, t := range all {
		if t.look().Version == version {
			return t, nil
		}
	}
	return Tool{}, fmt.Errorf("tool %q has no version %q; valid are %s, or no version for the newest", name, version, versions(all))
}

func (r Registry) unknown(name string) error {
	why := fmt.Sprintf("there is no tool %q", name)
	if near := suggest.Name(name, r.names); near != "" {
		return fmt.Errorf("%s; did you mean %q?", why, near)
	}
	return fmt.Errorf("%s; there are: %s", why, strings.Join(r.names, ", "))
}

// Names returns the names of the tools in alphabetical order.
func (r Registry) Names() []string { return slices.Clone(r.names) }

// Versions returns the tools of a name, newest first.
func (r Registry) Versions(name string) []Tool { return slices.Clone(r.tools[name]) }

// All returns every tool, sorted by name, and by version with the newest first.
func (r Registry) All() []Tool {
	var all []Tool
	for _, name := range r.names {
		all = append(all, r.tools[name]...)
	}
	return all
}

// Grant returns the union of the needs of all tools. It is the default grant of
// a root session.
func (r Registry) Grant() (perm.Set, error) {
	if r.grant == nil {
		return perm.Set{}, nil
	}
	return r.grant()
}

// replacing returns the registry as the successor of an older one. The tools of
// the old registry still revert the calls that they made, even if the tool has
// changed or is gone. Nothing else finds these tools.
func (r Registry) replacing(old Registry) Registry {
	r.retired = maps.Clone(old.retired)
	if r.retired == nil {
		r.retired = map[retiredKey]Tool{}
	}
	for _, t := range old.All() {
		s := t.look()
		if s.DisabledReason != "" {
			continue // no call can have used it
		}
		r.retired[retiredKey{s.Name, s.Version, s.UndoVersion}] = t
	}
	return r
}

// forRevert finds the declaration that reverts a call, by name and undo version.
// It prefers the declaration that made the call, then one of the same version.
func (r Registry) forRevert(of record.ToolRef) (Tool, bool) {
	var found []Tool
	for _, t := range r.tools[of.Name] {
		if t.look().UndoVersion == of.UndoVersion {
			found = append(found, t)
		}
	}
	if t, ok := r.retired[retiredKey{of.Name, of.Version, of.UndoVersion}]; ok {
		found = append(found, t)
	}
	slices.SortStableFunc(found, func(a, b Tool) int { return cmp.Compare(b.matchScore(of), a.matchScore(of)) })
	if len(found) == 0 {
		return Tool{}, false
	}
	return found[0], true
}

// matchScore returns how well a declaration matches the one that made a call.
func (t Tool) matchScore(of record.ToolRef) int {
	switch {
	case t.Digest() == of.Digest:
		return 2
	case t.look().Version == of.Version:
		return 1
	default:
		return 0
	}
}

// newestFirst sorts the versions of one name.
func newestFirst(name string, all []Tool) error {
	if len(all) == 1 {
		return nil
	}
	semantic := true
	for i, t := range all {
		version := t.look().Version
		if version == "" {
			return fmt.Errorf("%d tools are named %q, and one has no version; give each a version", len(all), name)
		}
		for _, other := range all[:i] {
			if other.look().Version == version {
				return fmt.Errorf("two tools are named %q and have version %q", name, version)
			}
		}
		semantic = semantic && semanticVersion(version) != ""
	}
	slices.Reverse(all)
	if !semantic {
		return nil
	}
	slices.SortFunc(all, func(a, b Tool) int { return -compareVersions(a.look().Version, b.look().Version) })
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1].look().Version, all[i].look().Version; compareVersions(a, b) == 0 {
			return errors.New("versions " + b + " and " + a + " of tool \"" + name + "\" could be taken for one another; rename one")
		}
	}
	return nil
}
