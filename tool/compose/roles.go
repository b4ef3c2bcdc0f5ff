package compose

import (
	"github.com/remit-dev/remit/internal/pointer"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/provenance"
)

// roles returns the roles of the arguments: the strictest of all parts. There
// are none, so that all is authority, if a part gets something else than the
// call's input: a value of it can then be anywhere in that.
func (n *node) roles(input []byte) provenance.Roles {
	if n.kind == "chain" && len(n.parts) > 1 {
		return nil
	}
	var parts []provenance.Roles
	for i, p := range n.parts {
		if !n.own(i) {
			return nil
		}
		parts = append(parts, p.Tool.Spec().Roles)
	}
	compiled, err := schema.Compile(input)
	if input != nil && err != nil {
		return nil // which is refused
	}
	var out provenance.Roles
	for _, part := range parts {
		for place := range part {
			if input != nil && compiled.CheckPointer(place) != nil {
				continue // no call has it
			}
			if out == nil {
				out = provenance.Roles{}
			}
			out[place] = strictest(parts, place)
		}
	}
	return out
}

// strictness lists the roles, mildest first.
var strictness = []provenance.Role{provenance.Selector, provenance.Payload, provenance.Authority}

// strictest returns the strictest role that values at a place have in a part.
func strictest(parts []provenance.Roles, place string) provenance.Role {
	stricter := func(a, b provenance.Role) provenance.Role { return worst(strictness, a, b) }
	all := provenance.Selector
	for _, part := range parts {
		all = stricter(all, pointer.Strictest(part, place, provenance.Authority, stricter))
	}
	return all
}
