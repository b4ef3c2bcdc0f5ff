package perm

import (
	"cmp"
	_ "embed"
	"encoding/json"
)

//go:embed input.schema.json
var inputSchema string

// InputSchema returns the JSON schema (draft 7) of the document that a policy
// sees as input: the JSON form of a Request. It is what rules are checked
// against when they are loaded, and what editors can complete from.
func InputSchema() []byte { return []byte(inputSchema) }

// MarshalJSON writes the input document. Lists that every document has are
// written as empty ones when they are nil, because a rule that counts or
// searches a null would fail where it should find nothing.
func (r Request) MarshalJSON() ([]byte, error) {
	type document Request
	return json.Marshal(document(r.Filled()))
}

// Filled returns r with the defaults of its JSON form in place: empty lists for
// nil ones, kind agent, and time in UTC. It shares memory with r.
func (r Request) Filled() Request {
	if r.Principal.Kind == "" {
		r.Principal.Kind = "agent"
	}
	if r.Session.Tools == nil {
		r.Session.Tools = map[string]ToolCounts{}
	}
	if r.Session.Recent == nil {
		r.Session.Recent = []RecentCall{}
	}
	r.Principal.Roles = orEmpty(r.Principal.Roles)
	r.Session.Labels = orEmpty(r.Session.Labels)
	if r.Session.Client != nil {
		c := *r.Session.Client
		c.Capabilities, c.Disabled = orEmpty(c.Capabilities), orEmpty(c.Disabled)
		r.Session.Client = &c
	}
	r.Tool.Tags = orEmpty(r.Tool.Tags)
	r.Tool.Risk = cmp.Or(r.Tool.Risk, RiskUndeclared)
	r.Time = r.Time.UTC()
	return r
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
