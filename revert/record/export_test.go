package record

import "github.com/remit-dev/remit/revert/kind"

// NewBody returns an empty body of a kind, as Unseal decodes into it.
func NewBody(k kind.Kind) (Body, error) { return newBody(k) }

// PlainHeader is the quick way of decoding a header.
var PlainHeader = plainHeader
