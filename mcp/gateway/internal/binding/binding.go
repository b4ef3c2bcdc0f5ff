package binding

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
)

// Binding is an access whose resource names arguments of the call.
type Binding struct {
	Access perm.ResourceAccess // as the entry writes it
	Params []string            // names of the arguments
	Bound  perm.ResourceAccess // with a wildcard for each argument
	Root   string              // of a file
	folder string              // of that root; empty: unknown
}

var parameter = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_-]*)\}`)

// Parameters returns the arguments that a resource names.
func Parameters(resource string) (names []string) {
	for _, found := range parameter.FindAllStringSubmatch(resource, -1) {
		names = append(names, found[1])
	}
	return names
}

// New parses an access. Roots holds the folders of the roots, by name.
func New(a perm.ResourceAccess, roots map[string]string) (Binding, error) {
	b := Binding{Access: a, Bound: a, Params: Parameters(a.Resource)}
	if rest, ok := strings.CutPrefix(a.Resource, "file://"); ok {
		b.Root, _, _ = strings.Cut(rest, "/")
		b.folder = roots[b.Root]
	}
	b.Bound.Resource = parameter.ReplaceAllStringFunc(a.Resource, func(found string) string {
		if strings.HasSuffix(a.Resource, "/"+found) {
			return "**"
		}
		return "*"
	})
	if _, err := perm.NewSet(b.Bound); err != nil {
		return b, fmt.Errorf("need %s: %w", a, err)
	}
	return b, nil
}

// Fill returns the exact accesses of one call. An argument that is a list of
// strings gives one access for each. A missing argument gives none.
func (b Binding) Fill(in canon.Value) ([]perm.ResourceAccess, error) {
	choices := []map[string]string{{}}
	for _, p := range b.Params {
		values, err := texts(in, p)
		if err != nil {
			return nil, err
		}
		var next []map[string]string
		for _, c := range choices {
			for _, v := range values {
				if b.Root != "" {
					if v, err = b.relative(p, v); err != nil {
						return nil, err
					}
				}
				one := map[string]string{p: v}
				for name, value := range c {
					one[name] = value
				}
				next = append(next, one)
			}
		}
		choices = next
	}
	var out []perm.ResourceAccess
	for _, c := range choices {
		a, err := b.exact(c)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out, nil
}

func texts(in canon.Value, name string) ([]string, error) {
	v, ok := in.Get(name)
	switch {
	case !ok || v.Kind() == canon.Null:
		return nil, nil
	case v.Kind() == canon.String:
		return []string{v.Text()}, nil
	case v.Kind() == canon.Array:
		var all []string
		for _, e := range v.Elements() {
			if e.Kind() != canon.String {
				return nil, fmt.Errorf("argument %q: want a list of texts", name)
			}
			all = append(all, e.Text())
		}
		return all, nil
	}
	return nil, fmt.Errorf("argument %q: want a text", name)
}

// relative returns a path as a name below its root, as upstreams often want
// absolute paths. The upstream interprets the path itself: this name informs
// the policy and is no authority.
func (b Binding) relative(name, path string) (string, error) {
	if filepath.IsAbs(path) {
		if b.folder == "" {
			return "", fmt.Errorf("argument %q: the path is absolute, and where root %s lies is not known", name, b.Root)
		}
		rel, err := filepath.Rel(b.folder, filepath.Clean(path))
		if err != nil {
			return "", fmt.Errorf("argument %q: the path leaves its root: %w", name, perm.ErrOutside)
		}
		path = rel
	}
	if path = filepath.ToSlash(filepath.Clean(path)); path == ".." || strings.HasPrefix(path, "../") {
		return "", fmt.Errorf("argument %q: the path leaves its root %s, which lies at %s: %w", name, b.Root, b.folder, perm.ErrOutside)
	}
	return path, nil
}

func (b Binding) exact(values map[string]string) (perm.ResourceAccess, error) {
	a := b.Access
	if len(b.Params) == 1 && b.Access.Resource == "file://"+b.Root+"/{"+b.Params[0]+"}" {
		r, err := perm.FileResource(b.Root, values[b.Params[0]])
		if err != nil {
			return a, fmt.Errorf("argument %q: %w", b.Params[0], err)
		}
		a.Resource = r.String()
		return a, nil
	}
	p, err := perm.ParsePattern(a.Resource)
	if err == nil {
		p, err = p.BindPattern(func(name string) (string, bool) {
			v, ok := values[name]
			return v, ok
		})
	}
	if err != nil {
		return a, err
	}
	r, ok := p.Exact().Get()
	if !ok {
		return a, errors.New("a need that names an argument has no wildcard")
	}
	a.Resource = r.String()
	return a, nil
}
