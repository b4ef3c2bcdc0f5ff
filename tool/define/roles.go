package define

import (
	"maps"
	"slices"

	"github.com/remit-dev/remit/internal/jsonfile"
	"github.com/remit-dev/remit/internal/pointer"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/provenance"
)

// strictness lists the roles, mildest first.
var strictness = []provenance.Role{provenance.Selector, provenance.Payload, provenance.Authority}

// roles reads what the arguments do. A role that the implementation gives an
// argument stays, or becomes stricter.
func (f *file) roles() {
	input, err := schema.Compile(f.spec.Input)
	if err == nil { // the file can leave out arguments of the implementation
		f.spec.Roles = maps.Clone(f.spec.Roles)
		maps.DeleteFunc(f.spec.Roles, func(place string, _ provenance.Role) bool { return input.CheckPointer(place) != nil })
	}
	n := f.root.Get("roles")
	if n == nil || !n.IsObject() {
		return
	}
	if f.spec.Roles == nil {
		f.spec.Roles = provenance.Roles{}
	}
	for _, m := range n.Members() {
		role := provenance.Role(m.Text())
		if !slices.Contains(strictness, role) {
			m.Refuse("unknown role; valid are authority, content, selector")
			continue
		}
		if bad := (provenance.Roles{m.Name: role}).Check(); bad != nil {
			m.RefuseName("%v", bad)
			continue
		}
		if err == nil {
			if bad := input.CheckPointer(m.Name); bad != nil {
				m.RefuseName("%v", bad)
				continue
			}
		}
		if f.milderRole(m, role) {
			continue
		}
		f.spec.Roles[m.Name] = role
	}
}

// milderRole refuses a role that is milder than that of the implementation, if
// the implementation declares roles.
func (f *file) milderRole(m *jsonfile.Node, role provenance.Role) bool {
	base, narrows := f.base()
	if !narrows || len(base.Spec().Roles) == 0 {
		return false
	}
	rank := func(r provenance.Role) int { return slices.Index(strictness, r) }
	was := pointer.Strictest(base.Spec().Roles, m.Name, provenance.Authority, func(a, b provenance.Role) provenance.Role {
		return strictness[max(rank(a), rank(b))]
	})
	if rank(role) < rank(was) {
		m.Refuse("it is milder than what the implementation says of itself, which is %s", was)
		return true
	}
	return false
}

// fields reads the trust of parts of the output, beside what the implementation
// says of its own.
func (f *file) fields(n *jsonfile.Node) map[string]provenance.Trust {
	var declared *provenance.Content
	if base, narrows := f.base(); narrows {
		declared = base.Spec().OutputContent
	}
	out := map[string]provenance.Trust{}
	if declared != nil {
		maps.Copy(out, declared.Fields)
	}
	if n != nil && n.IsObject() {
		for _, m := range n.Members() {
			f.field(m, declared, out)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (f *file) field(m *jsonfile.Node, declared *provenance.Content, out map[string]provenance.Trust) {
	trust := provenance.Trust(m.Text())
	if err := (provenance.Content{Fields: map[string]provenance.Trust{m.Name: trust}}).Check(); err != nil {
		m.Refuse("%v", err)
		return
	}
	if output, err := schema.Compile(f.spec.Output); err == nil {
		if err := output.CheckPointer(m.Name); err != nil {
			m.RefuseName("%v", err)
			return
		}
	}
	if declared != nil && trust == provenance.Trusted {
		was := pointer.Strictest(declared.Fields, m.Name, declared.Trust, func(a, b provenance.Trust) provenance.Trust {
			if a != provenance.Trusted {
				return a
			}
			return b
		})
		if was != provenance.Trusted {
			m.Refuse("it is milder than what the implementation says of itself, which is %s", provenance.Untrusted)
			return
		}
	}
	out[m.Name] = trust
}
