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

// IntersectPairs is Intersect without an index: every clause with every other.
func (s Set) IntersectPairs(other Set) Set {
	var kept []clause
	for _, c := range s.clauses {
		for _, d := range other.clauses {
			joined, ok := clause{all: slices.Concat(c.all, d.all), except: slices.Concat(c.except, d.except)}.simplify()
			if !ok || slices.ContainsFunc(kept, func(k clause) bool { return k.coversClause(joined) }) {
				continue
			}
			kept = append(slices.DeleteFunc(kept, joined.coversClause), joined)
		}
	}
	return Set{clauses: kept}
}

// OverlapsByTable is Overlaps by a table of all pairs of tails.
func (p Pattern) OverlapsByTable(other Pattern) bool {
	globs := func(a, b string) bool {
		return overlapTable(len(a), len(b),
			func(i int) bool { return a[i] == star[0] },
			func(j int) bool { return b[j] == star[0] },
			func(i, j int) bool { return a[i] == b[j] })
	}
	a, b := p.globs(), other.globs()
	return p.kind == other.kind && globs(p.authority.glob, other.authority.glob) &&
		overlapTable(len(a), len(b),
			func(i int) bool { return a[i] == deep },
			func(j int) bool { return b[j] == deep },
			func(i, j int) bool { return globs(a[i], b[j]) })
}

func overlapTable(as, bs int, wildA, wildB func(int) bool, meet func(i, j int) bool) bool {
	below := make([]bool, bs+1) // the row of i+1
	row := make([]bool, bs+1)
	for i := as; i >= 0; i-- {
		for j := bs; j >= 0; j-- {
			switch {
			case i == as && j == bs:
				row[j] = true
			case i < as && wildA(i):
				row[j] = below[j] || j < bs && row[j+1]
			case j < bs && wildB(j):
				row[j] = row[j+1] || i < as && below[j]
			default:
				row[j] = i < as && j < bs && below[j+1] && meet(i, j)
			}
		}
		row, below = below, row
	}
	return below[0]
}
