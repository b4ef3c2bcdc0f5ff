package perm

import "slices"

// Principal is the identity that makes calls. The host program vouches for it.
// Nothing in a Principal ever comes from a model or from the wire.
type Principal struct {
	ID    string   `json:"id"`              // stable name; required
	Kind  string   `json:"kind"`            // agent, user or service; empty: agent
	Roles []string `json:"roles"`           // names that policies may test
	Chain []string `json:"chain,omitempty"` // IDs of the delegators, outermost first
}

// Clone returns a copy that shares no memory with p. It fills in the defaults,
// so that policies always see a kind and a list of roles.
func (p Principal) Clone() Principal {
	p.Roles = append([]string{}, p.Roles...)
	p.Chain = slices.Clone(p.Chain)
	if p.Kind == "" {
		p.Kind = "agent"
	}
	return p
}
