package callstate

// ModuleKey gives handles of this module access to the state of a tool context
// or permit. Only NewKey creates a valid one. Foreign code could obtain the
// zero ModuleKey by type inference, which is invalid.
type ModuleKey struct{ made *struct{} }

// NewKey returns a valid key.
func NewKey() ModuleKey { return ModuleKey{made: new(struct{})} }

// Valid reports whether NewKey made k.
func (k ModuleKey) Valid() bool { return k.made != nil }
