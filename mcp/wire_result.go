package mcp

import (
	"encoding/json"
	"fmt"
	"maps"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// wireResult is a result as it goes over the wire: what the SDK's own types cannot say, such as members of another server's
// result, it can.
type wireResult struct {
	sdk.ResultBase
	members map[string]json.RawMessage
}

// stateless is the first revision in which every request says who asks and each result what it is.
const stateless = "2026-07-28"

// newObject makes a complete result in the words of a revision.
func newObject(revision string) *wireResult {
	o := &wireResult{members: map[string]json.RawMessage{}}
	if revision >= stateless {
		o.members["resultType"] = json.RawMessage(`"complete"`)
	}
	return o
}

// set gives the object a member. What it is given is made here, of values that JSON can say.
func (o *wireResult) set(name string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("mcp: member %s: %v", name, err))
	}
	o.members[name] = data
}

// note puts a value into _meta.
func (o *wireResult) note(key string, value any) {
	if o.Meta == nil {
		o.Meta = sdk.Meta{}
	}
	o.Meta[key] = value
}

// MarshalJSON writes the members, and _meta where there is something in it.
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
