package perm

import "slices"

// Principal is who asks. The host program vouches for it: nothing in a
// Principal is ever taken from a model or from the wire.
type Principal struct {
	ID    string   `json:"id"`              // stable name, required
	Kind  string   `json:"kind"`            // agent, user, service; empty counts as agent
	Roles []string `json:"roles"`           // names that policies may test
	Chain []string `json:"chain,omitempty"` // ids of the delegators, outermost first
}

// Clone returns a copy that shares no memory with p, with the defaults filled
// in, so that policies always see a kind and a list of roles.
func (p Principal) Clone() Principal {
	p.Roles = append([]string{}, p.Roles...)
	p.Chain = slices.Clone(p.Chain)
	if p.Kind == "" {
		p.Kind = "agent"
	}
	return p
}
