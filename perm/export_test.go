package perm

import "slices"

// Actions exports every action to tests.
func Actions() []Action { return actions() }

// CoversSet reports whether s holds everything that other holds. It may be
// wrongly false if only several accesses of s together cover one of other. It
// is never wrongly true. Every set covers itself and every set narrowed from
// it.
func (s Set) CoversSet(other Set) bool {
	for _, d := range other.clauses {
		if !slices.ContainsFunc(s.clauses, func(c clause) bool { return c.coversClause(d) }) {
			return false
		}
	}
	return true
}

// Union returns what s or other holds. An except of one does not remove what
// the other holds.
func (s Set) Union(other Set) Set {
	return setOf(slices.Concat(s.clauses, other.clauses))
}
