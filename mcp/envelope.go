package mcp

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// doubled refuses a request with a member of its envelope that is there twice: two readers, such as something before the server that looks
// at requests, could each take another one for the request. The envelope is the message, the members of its params, and those of their
// _meta with all that these hold. Arguments are refused where they are read.
func doubled(body []byte) *jsonrpc.Error {
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() == '[' { // several messages, as an older revision has them
		_, _ = dec.ReadToken() // as it was seen
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

// in is the part that a member of this one is; false: it is none of the envelope.
func (p part) in(member string) (part, bool) {
	switch {
	case p == ofMessage && member == "params":
		return ofParams, true
	case p == ofParams && member == "_meta", p == ofMeta:
		return ofMeta, true
	}
	return p, false
}

// twice reads an object of the envelope, and returns a member that is there twice. Names that differ in case alone are the same one, as
// some readers have it, but not those of metadata. What is no JSON is for who reads the request.
func twice(dec *jsontext.Decoder, of part) string {
	seen := map[string]bool{}
	_, _ = dec.ReadToken() // its beginning
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
	_, _ = dec.ReadToken() // its end
	return ""
}
