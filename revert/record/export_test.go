package record

import "github.com/remit-dev/remit/revert/kind"

// NewBody returns an empty body of a kind, as Unseal decodes into it.
func NewBody(k kind.Kind) (Body, error) { return newBody(k) }

// PlainHeader is the fast path of decodeHeader.
var PlainHeader = plainHeader
