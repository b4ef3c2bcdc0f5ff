// Package catalog describes what upstreams offer for reading beside tools:
// resources and prompts. Packages mcp and gateway share it.
package catalog

import (
	"encoding/json"
	"slices"
)

// Offer is a resource, a resource template or a prompt of an upstream, with the
// tool call that reads it.
type Offer struct {
	Name   string          // a URI, a URI template, or the prompt's name for clients
	Object json.RawMessage // as it is listed
	Tool   string          // of the runtime; reads the offer
	Input  json.RawMessage // of that call; for a listed template or prompt: the input for the policy decision whether to show it
}

// All holds the offers of all upstreams. A nil list means that no upstream has
// such offers; an empty list means that there are none at the moment.
type All struct{ Resources, Templates, Prompts []Offer }

// Equal reports whether clients see two lists of offers as equal.
func Equal(a, b []Offer) bool {
	return (a == nil) == (b == nil) && slices.EqualFunc(a, b, func(x, y Offer) bool {
		return x.Name == y.Name && x.Tool == y.Tool && string(x.Object) == string(y.Object)
	})
}
