package perm

import (
	"slices"
	"strings"
)

// keyDepth bounds the key of a clause. Deeper names do not separate clauses of
// practical sets any further.
const keyDepth = 16

// key returns the literal beginning of the first rule of c: action, kind,
// authority, and names of the path up to the first wildcard. A NUL ends each
// part. Two clauses overlap, or one covers the other, only if one of their keys
// begins with the other.
func (c clause) key() string {
	r := c.all[0]
	var b strings.Builder
	write := func(text string) {
		b.WriteString(text)
		b.WriteByte(0)
	}
	write(string(r.action))
	write(string(r.pattern.kind))
	if !r.pattern.authority.literal() {
		return b.String()
	}
	write(r.pattern.authority.glob)
	for i, s := range r.pattern.path {
		if i == keyDepth || !s.literal() {
			break
		}
		write(s.glob)
	}
	return b.String()
}

// prefixes returns the beginnings of a key that end with a part, the shortest
// first, and the whole key last.
func prefixes(key string) []string {
	var list []string
	for i := range len(key) {
		if key[i] == 0 {
			list = append(list, key[:i+1])
		}
	}
	return list
}

// clauseIndex finds the clauses that can overlap a given one. Sets with
// thousands of clauses are common: the grant of a session holds the needs of
// all its tools. The zero value is empty.
type clauseIndex struct {
	whole map[string][]int // by the whole key
	below map[string][]int // by each beginning of the key
}

func (x *clauseIndex) add(number int, c clause) {
	if x.whole == nil {
		x.whole, x.below = map[string][]int{}, map[string][]int{}
	}
	key := c.key()
	x.whole[key] = append(x.whole[key], number)
	for _, p := range prefixes(key) {
		x.below[p] = append(x.below[p], number)
	}
}

// near returns the numbers of the clauses that can overlap c, in ascending
// order.
func (x *clauseIndex) near(c clause) []int {
	if len(x.whole) == 0 {
		return nil
	}
	key := c.key()
	numbers := slices.Clone(x.below[key])
	for _, p := range prefixes(key) {
		if p != key {
			numbers = append(numbers, x.whole[p]...)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// widest collects clauses without those that another one makes superfluous, so
// that repeated narrowing does not grow a set.
type widest struct {
	clauses []clause
	covered []bool // by a clause that came later
	index   clauseIndex
}

func (w *widest) add(c clause) {
	near := slices.DeleteFunc(w.index.near(c), func(i int) bool { return w.covered[i] })
	if slices.ContainsFunc(near, func(i int) bool { return w.clauses[i].coversClause(c) }) {
		return
	}
	for _, i := range near {
		w.covered[i] = c.coversClause(w.clauses[i])
	}
	w.index.add(len(w.clauses), c)
	w.clauses, w.covered = append(w.clauses, c), append(w.covered, false)
}

func (w *widest) set() Set {
	var kept []clause
	for i, c := range w.clauses {
		if !w.covered[i] {
			kept = append(kept, c)
		}
	}
	return Set{clauses: kept}
}

// split returns the clauses that a and b share, and the rest of each.
func split(a, b []clause) (shared, restA, restB []clause) {
	inB := make(map[string]bool, len(b))
	for _, c := range b {
		inB[c.text()] = true
	}
	both := map[string]bool{}
	for _, c := range a {
		if text := c.text(); inB[text] {
			shared, both[text] = append(shared, c), true
		} else {
			restA = append(restA, c)
		}
	}
	for _, c := range b {
		if !both[c.text()] {
			restB = append(restB, c)
		}
	}
	return shared, restA, restB
}

// text identifies c: no text of an access contains a NUL.
func (c clause) text() string { return strings.Join(c.texts(), "\x00") }
