package record

// NewBody returns an empty body of a kind, as Unseal decodes into it.
func NewBody(k Kind) (Body, error) { return newBody(k) }

// PlainHeader is the fast path of decodeHeader.
var PlainHeader = plainHeader

// AppendBody writes the body of an entry.
var AppendBody = appendBody

// AppendHeader writes the header of an entry.
var AppendHeader = appendHeader
