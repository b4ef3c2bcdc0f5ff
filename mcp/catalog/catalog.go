// Package catalog describes what the upstreams of a server have to be read
// beside tools: resources, resource templates and prompts. Package mcp serves
// the entries that package gateway finds.
package catalog

import (
	"encoding/json"
	"slices"
)

// Entry is a resource, a resource template or a prompt of an upstream, with the
// tool call that reads it.
type Entry struct {
	Name   string          // a URI, a URI template, or the prompt's name for clients
	Object json.RawMessage // as it is listed
	Tool   string          // of the runtime; reads the entry
	Input  json.RawMessage // of that call; for a listed template or prompt: the input for the policy decision whether to show it
}

// Entries holds the entries of all upstreams. A nil list means that no upstream
// has such entries; an empty list means that there are none at the moment.
type Entries struct{ Resources, Templates, Prompts []Entry }

// Equal reports whether clients see two lists of entries as equal.
func Equal(a, b []Entry) bool {
	return (a == nil) == (b == nil) && slices.EqualFunc(a, b, func(x, y Entry) bool {
		return x.Name == y.Name && x.Tool == y.Tool && string(x.Object) == string(y.Object)
	})
}
