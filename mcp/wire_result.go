package mcp

import (
	"encoding/json"
	"fmt"
	"maps"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// wireResult is a result as it is sent. It holds what the SDK's types cannot,
// such as members of an upstream result.
type wireResult struct {
	sdk.ResultBase
	members map[string]json.RawMessage
}

// stateless is the first revision in which each request identifies its client
// and each result its type.
const stateless = "2026-07-28"

// newObject makes a complete result of a revision.
func newObject(revision string) *wireResult {
	o := &wireResult{members: map[string]json.RawMessage{}}
	if revision >= stateless {
		o.members["resultType"] = json.RawMessage(`"complete"`)
	}
	return o
}

// set sets a member. The server makes all values, and they are valid JSON.
func (o *wireResult) set(name string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("mcp: member %s: %v", name, err))
	}
	o.members[name] = data
}

// note sets a value in _meta.
func (o *wireResult) note(key string, value any) {
	if o.Meta == nil {
		o.Meta = sdk.Meta{}
	}
	o.Meta[key] = value
}

// MarshalJSON writes the members, and _meta if it is not empty.
func (o *wireResult) MarshalJSON() ([]byte, error) {
	all := maps.Clone(o.members)
	if len(o.Meta) > 0 {
		meta, err := json.Marshal(o.Meta)
		if err != nil {
			return nil, err
		}
		all["_meta"] = meta
	}
	return json.Marshal(all)
}
