package callstate

// ModuleKey opens the inside of a tool context or permit for handles of this module.
// Only NewKey makes one that works; the zero Key, which foreign code could
// obtain by type inference, opens nothing.
type ModuleKey struct{ made *struct{} }

// NewKey returns a key that works.
func NewKey() ModuleKey { return ModuleKey{made: new(struct{})} }

// Valid reports whether NewKey made k.
func (k ModuleKey) Valid() bool { return k.made != nil }
