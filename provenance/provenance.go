// Package provenance says where a tool, a call and a datum come from. It is a
// leaf: plain data that any other package may carry.
package provenance

import (
	"fmt"
	"slices"
)

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

// Confidentiality is who may see a datum. The zero Confidentiality is private.
type Confidentiality string

// The levels of confidentiality.
const (
	Private Confidentiality = "private" // it is not for everybody
	Public  Confidentiality = "public"  // everybody may see it
)

// Content is what a tool says of all that its calls return, also of their errors. The zero Content may hold anything: it is untrusted
// and private.
type Content struct {
	MediaType       string          `json:"media_type,omitempty"` // of the text, such as text/html; for whoever shows it
	Trust           Trust           `json:"trust,omitempty"`
	Confidentiality Confidentiality `json:"confidentiality,omitempty"`
}

// Check refuses what has no meaning.
func (c Content) Check() error {
	if !slices.Contains([]Trust{"", Untrusted, Trusted}, c.Trust) {
		return fmt.Errorf("trust %q; valid are untrusted, trusted", string(c.Trust))
	}
	if !slices.Contains([]Confidentiality{"", Private, Public}, c.Confidentiality) {
		return fmt.Errorf("confidentiality %q; valid are private, public", string(c.Confidentiality))
	}
	return nil
}

// Labels are what a session that has seen such content is labelled with: untrusted, private.
func (c Content) Labels() (labels []string) {
	if c.Trust != Trusted {
		labels = append(labels, string(Untrusted))
	}
	if c.Confidentiality != Public {
		labels = append(labels, string(Private))
	}
	return labels
}

// With is the content of both together: trusted and public only where both are.
func (c Content) With(other Content) Content {
	out := Content{Trust: Trusted, Confidentiality: Public}
	if c.MediaType == other.MediaType {
		out.MediaType = c.MediaType
	}
	if c.Trust != Trusted || other.Trust != Trusted {
		out.Trust = Untrusted
	}
	if c.Confidentiality != Public || other.Confidentiality != Public {
		out.Confidentiality = Private
	}
	return out
}

// Reference is a source that a result rests on.
type Reference struct {
	Title string `json:"title,omitempty"`
	URL   string `json:"url,omitempty"`
}
