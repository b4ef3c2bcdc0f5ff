package tool

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/remit-dev/remit/internal/pointer"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/provenance"
)

// rolesOf returns the roles that the tags of a type's fields give to the
// arguments.
func rolesOf(in reflect.Type) (provenance.Roles, error) {
	tags, err := schema.Tagged(in, "role")
	if err != nil || len(tags) == 0 {
		return nil, err
	}
	roles := provenance.Roles{}
	for place, role := range tags {
		roles[place] = provenance.Role(role)
	}
	return roles, roles.Check()
}

// roles returns the roles of parameters, beside those of a Spec.
func (all Params) roles(declared provenance.Roles) (provenance.Roles, error) {
	out := maps.Clone(declared)
	for _, p := range all {
		if p.Role == "" {
			continue
		}
		at := pointer.Join("", p.Name)
		if other, is := out[at]; is && other != p.Role {
			return nil, fmt.Errorf("parameter %q: its role is %s, and Roles says %s; leave one out", p.Name, p.Role, other)
		}
		if out == nil {
			out = provenance.Roles{}
		}
		out[at] = p.Role
	}
	return out, out.Check()
}

// checkPlaces refuses roles of arguments and trust of fields that the schemas
// do not know: a misspelled name would leave a part as the whole around it is.
func (t *tool) checkPlaces() error {
	for _, place := range slices.Sorted(maps.Keys(t.spec.Roles)) {
		if err := t.input.CheckPointer(place); err != nil {
			return fmt.Errorf("role of argument %q: %w", place, err)
		}
	}
	if t.spec.OutputContent == nil {
		return nil
	}
	for _, place := range slices.Sorted(maps.Keys(t.spec.OutputContent.Fields)) {
		if err := t.output.CheckPointer(place); err != nil {
			return fmt.Errorf("trust of field %q: %w", place, err)
		}
	}
	return nil
}
