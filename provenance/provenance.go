// Package provenance describes the origin of a tool, a call and a value. It is
// a leaf package: plain data that any other package may use.
package provenance

import (
	"fmt"
	"slices"
)

// Kind is the kind of a tool's origin.
type Kind string

// The kinds. The empty kind is Unknown.
const (
	Unknown Kind = "unknown"
	Builtin Kind = "builtin" // included in remit
	Host    Kind = "host"    // defined by the program that embeds remit
	MCP     Kind = "mcp"     // a tool of an MCP server behind the gateway
	// Definition is a file of package tool/define, bound to code of the host
	// program.
	Definition Kind = "definition"
	// Composed is made of other tools. Name lists how, and of which, each with
	// its digest.
	Composed Kind = "composed"
)

// Source is the origin of a tool.
type Source struct {
	Kind    Kind   `json:"kind"`
	Name    string `json:"name,omitempty"`    // module, server or file
	Version string `json:"version,omitempty"` // version of that module, server or file
	// Implementation is the key with which a definition file finds its code.
	Implementation string `json:"implementation,omitempty"`
	// Digest is the digest of the bytes of a definition file. It is for people:
	// the digest of the tool covers the meaning of the file.
	Digest string `json:"digest,omitempty"`
}

// OrUnknown returns s, with the kind filled in.
func (s Source) OrUnknown() Source {
	if s.Kind == "" {
		s.Kind = Unknown
	}
	return s
}

// Trust is how far a value can be believed. The zero Trust is untrusted.
type Trust string

// The levels of trust.
const (
	Untrusted Trust = "untrusted" // can contain instructions of strangers
	Trusted   Trust = "trusted"   // made by the host, or by a source that it vouches for
)

// Confidentiality is who may see a value. The zero Confidentiality is private.
type Confidentiality string

// The levels of confidentiality.
const (
	Private Confidentiality = "private" // not public
	Public  Confidentiality = "public"  // everyone may see it
)

// Content describes all results of a tool's calls, including errors. The zero
// Content is untrusted and private.
type Content struct {
	MediaType       string          `json:"media_type,omitempty"` // type of the text, such as text/html; for display
	Trust           Trust           `json:"trust,omitempty"`
	Confidentiality Confidentiality `json:"confidentiality,omitempty"`
	// Fields are the trust of parts of the structured output, by JSON pointer
	// with * for each element or member, such as "/items/*/id". The part that
	// is named most exactly counts, and the rest is as the whole. A part is
	// trusted only if outsiders cannot choose its value.
	// The labels of a session follow the whole.
	Fields map[string]Trust `json:"fields,omitempty"`
}

// Check returns an error for an invalid value.
func (c Content) Check() error {
	if !slices.Contains([]Trust{"", Untrusted, Trusted}, c.Trust) {
		return fmt.Errorf("trust %q; valid are untrusted, trusted", string(c.Trust))
	}
	if !slices.Contains([]Confidentiality{"", Private, Public}, c.Confidentiality) {
		return fmt.Errorf("confidentiality %q; valid are private, public", string(c.Confidentiality))
	}
	for pointer, trust := range c.Fields {
		if !slices.Contains([]Trust{Untrusted, Trusted}, trust) {
			return fmt.Errorf("field %q: trust %q; valid are untrusted, trusted", pointer, string(trust))
		}
		if err := checkPointer(pointer); err != nil {
			return fmt.Errorf("field %w", err)
		}
	}
	return nil
}

// Labels returns the labels of a session that has seen such content: untrusted,
// private.
func (c Content) Labels() (labels []string) {
	if c.Trust != Trusted {
		labels = append(labels, string(Untrusted))
	}
	if c.Confidentiality != Public {
		labels = append(labels, string(Private))
	}
	return labels
}

// With returns the content of both together: trusted and public only if both
// are. It has no fields.
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

// Reference is a source of a result.
type Reference struct {
	Title string `json:"title,omitempty"`
	URL   string `json:"url,omitempty"`
}
