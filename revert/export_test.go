package revert

// MemoryStore returns a function that opens one memory journal again and again,
// so that tests can look at a store after an owner is gone.
func MemoryStore() func() Journal {
	store := newMemoryStore()
	return func() Journal { return store.open() }
}

// NewBody returns an empty body of a kind, as Unseal decodes into it.
func NewBody(k Kind) (Body, error) { return newBody(k) }

// PlainHeader is the quick way of decoding a header.
var PlainHeader = plainHeader
