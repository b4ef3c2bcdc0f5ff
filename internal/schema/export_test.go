package schema

import "github.com/remit-dev/remit/internal/canon"

// Quick reports whether the fast path supports the schema, and whether it
// accepts a value.
func Quick(s *Schema, v canon.Value) (known, accepts bool) { return s.quick != nil, s.quick.accepts(v) }

// Slow returns the schema without its fast path.
func Slow(s *Schema) *Schema {
	return &Schema{compiled: s.compiled, root: s.root, canonical: s.canonical}
}
