package mcp

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// doubled rejects a request with a duplicate member in its envelope: two
// readers, such as a proxy and the server, could each read another request. The
// envelope is the message, the members of its params, and those of their _meta
// with all that these contain. The code that reads the arguments rejects
// duplicates there.
func doubled(body []byte) *jsonrpc.Error {
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() == '[' { // a batch, as in an older revision
		_, _ = dec.ReadToken() // peeked before
	}
	for dec.PeekKind() == '{' {
		if name := twice(dec, ofMessage); name != "" {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("the request has two members %q", name)}
		}
	}
	return nil
}

// part is an object of the envelope.
type part int

const (
	ofMessage part = iota
	ofParams
	ofMeta
)

// in returns the part that a member of this part is. It returns false if the
// member is not in the envelope.
func (p part) in(member string) (part, bool) {
	switch {
	case p == ofMessage && member == "params":
		return ofParams, true
	case p == ofParams && member == "_meta", p == ofMeta:
		return ofMeta, true
	}
	return p, false
}

// twice reads an object of the envelope, and returns a duplicate member. Names
// that differ only in case are duplicates, as some readers ignore case, but not
// in metadata. The code that reads the request reports invalid JSON.
func twice(dec *jsontext.Decoder, of part) string {
	seen := map[string]bool{}
	_, _ = dec.ReadToken() // the opening brace
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return ""
		}
		said := token.String()
		name := said
		if of != ofMeta {
			name = strings.ToLower(said)
		}
		if seen[name] {
			return said
		}
		seen[name] = true
		inner, is := of.in(name)
		switch {
		case is && dec.PeekKind() == '{':
			if found := twice(dec, inner); found != "" {
				return found
			}
		case dec.SkipValue() != nil:
			return ""
		}
	}
	_, _ = dec.ReadToken() // the closing brace
	return ""
}
