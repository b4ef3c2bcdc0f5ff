// Package provenance says where a tool, a call and a datum come from. It is a
// leaf: plain data that any other package may carry.
package provenance

// Kind is the sort of place that a tool comes from.
type Kind string

// The kinds. The empty kind is Unknown.
const (
	Unknown Kind = "unknown"
	Builtin Kind = "builtin" // ships with remit
	Host    Kind = "host"    // defined by the program that embeds remit
	MCP     Kind = "mcp"     // another server's tool behind the gateway
	// Definition is a file of package tool/define, bound to code of the host program.
	Definition Kind = "definition"
	// Composed is made of other tools; Name says how, and of which, each with its digest.
	Composed Kind = "composed"
)

// Source is where a tool comes from.
type Source struct {
	Kind    Kind   `json:"kind"`
	Name    string `json:"name,omitempty"`    // module, server or file
	Version string `json:"version,omitempty"` // of that module, server or file
	// Implementation is the key under which a definition file finds its code.
	Implementation string `json:"implementation,omitempty"`
	// Digest is of the bytes of a definition file. It is for people: what of the file
	// means anything is in the digest of the tool.
	Digest string `json:"digest,omitempty"`

	// Of an adjusted tool: the digest of the tool that it was made from, and of the patch.
	Parent string `json:"parent,omitempty"`
	Patch  string `json:"patch,omitempty"`
}

// OrUnknown returns s, with the kind filled in.
func (s Source) OrUnknown() Source {
	if s.Kind == "" {
		s.Kind = Unknown
	}
	return s
}

// Trust is how far a datum can be believed. The zero Trust is untrusted.
type Trust string

// The levels of trust.
const (
	Untrusted Trust = "untrusted" // may hold instructions of strangers
	Trusted   Trust = "trusted"   // made by the host or a source it vouches for
)

// Reference is a source that a result rests on.
type Reference struct {
	Title string `json:"title,omitempty"`
	URL   string `json:"url,omitempty"`
}
