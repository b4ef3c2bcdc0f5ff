package perm

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
)

//go:embed input.schema.json
var inputSchema string

// InputSchema returns the JSON schema (draft 7) of the policy input: the JSON
// form of a Request. The loader checks rules against it, and editors can
// complete from it.
func InputSchema() []byte { return []byte(inputSchema) }

// MarshalJSON writes the input document. It writes nil lists that every
// document has as empty ones. A rule that counts or searches a null fails
// instead of finding nothing.
func (r Request) MarshalJSON() ([]byte, error) {
	type document Request
	return json.Marshal(document(r.Filled()))
}

// Filled returns r with the defaults of its JSON form: empty lists for nil
// ones, kind agent, and time in UTC. It shares memory with r.
func (r Request) Filled() Request {
	if r.Principal.Kind == "" {
		r.Principal.Kind = "agent"
	}
	if r.Session.Recent == nil {
		r.Session.Recent = []RecentCall{}
	}
	r.Principal.Roles = orEmpty(r.Principal.Roles)
	r.Session.Labels = orEmpty(r.Session.Labels)
	if c := r.Session.Client; c != nil && (c.Capabilities == nil || c.Disabled == nil) {
		filled := *c
		filled.Capabilities, filled.Disabled = orEmpty(c.Capabilities), orEmpty(c.Disabled)
		r.Session.Client = &filled
	}
	r.Call.Values = filledValues(r.Call.Values)
	r.Tool.Tags = orEmpty(r.Tool.Tags)
	r.Tool.Risk = cmp.Or(r.Tool.Risk, RiskUndeclared)
	r.Time = r.Time.UTC()
	return r
}

// filledValues returns values with lists of origins.
func filledValues(values []ValueFacts) []ValueFacts {
	missing := func(v ValueFacts) bool {
		return v.Origins == nil || slices.ContainsFunc(v.Identifiers, func(id IdentifierFacts) bool { return id.Origins == nil })
	}
	if !slices.ContainsFunc(values, missing) {
		return values
	}
	values = slices.Clone(values)
	for i := range values {
		v := &values[i]
		v.Origins, v.Identifiers = orEmpty(v.Origins), slices.Clone(v.Identifiers)
		for j := range v.Identifiers {
			v.Identifiers[j].Origins = orEmpty(v.Identifiers[j].Origins)
		}
	}
	return values
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
