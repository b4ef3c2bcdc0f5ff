// Package catalog says what other servers have to be read, beside their tools: resources and prompts. A server of the protocol and
// the gateway share it.
package catalog

import (
	"encoding/json"
	"slices"
)

// Offer is a resource, a template of resources, or a prompt of another server, and by which call of a tool it is read.
type Offer struct {
	Name   string          // a URI, a template of URIs, or the name that clients know a prompt by
	Object json.RawMessage // as it is listed
	Tool   string          // of the runtime, which reads it
	Input  json.RawMessage // of that call; of a template or a prompt that is listed, for whoever decides whether it is shown
}

// All are the offers of all servers. A list that is nil is of none; where a server has such things and none at the moment, it is empty.
type All struct{ Resources, Templates, Prompts []Offer }

// Equal reports whether two lists of offers look the same to clients.
func Equal(a, b []Offer) bool {
	return (a == nil) == (b == nil) && slices.EqualFunc(a, b, func(x, y Offer) bool {
		return x.Name == y.Name && x.Tool == y.Tool && string(x.Object) == string(y.Object)
	})
}
