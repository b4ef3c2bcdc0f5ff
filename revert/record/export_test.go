package record

// NewBody returns an empty body of a kind, as Unseal decodes into it.
func NewBody(k Kind) (Body, error) { return newBody(k) }

// PlainHeader is the fast path of decodeHeader.
var PlainHeader = plainHeader

// AppendHeader writes the header of an entry.
var AppendHeader = appendHeader
