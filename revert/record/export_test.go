package record

import "github.com/remit-dev/remit/internal/commitment"

// NewBody returns an empty body of a kind, as Unseal decodes into it.
func NewBody(k Kind) (Body, error) { return newBody(k) }

// PlainHeader is the fast path of decodeHeader.
var PlainHeader = plainHeader

// Leaf returns the leaf that the bytes of an entry make, or "" if the bytes are
// not those of a body.
func Leaf(e Entry) string {
	sum, ok := e.bodySum()
	if !ok {
		return ""
	}
	return commitment.Leaf(e.Head, sum)
}

// AppendBody writes the body of an entry.
var AppendBody = appendBody

// AppendHeader writes the header of an entry.
var AppendHeader = appendHeader
