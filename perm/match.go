package perm

import (
	"maps"
	"slices"
	"strings"
)

// Matches reports whether p matches r.
func (p Pattern) Matches(r Resource) bool {
	return p.kind != "" && p.kind == r.kind &&
		(p.port == 0 || p.port == r.port) &&
		(p.statement == "" || p.statement == r.statement) &&
		matchGlob(p.authority.glob, r.authority) &&
		matchPath(p.globs(), r.Segments())
}

// Covers reports whether p matches every resource that other matches. It is
// never wrongly true. It is wrongly false in two cases. In the first, the
// patterns are so complex that the check takes too long. In the second, a star
// can only match nothing, because its name already has the maximum length.
func (p Pattern) Covers(other Pattern) bool {
	return p.kind != "" && p.kind == other.kind &&
		(p.port == 0 || p.port == other.port) &&
		(p.statement == "" || p.statement == other.statement) &&
		matchGlob(p.authority.glob, other.authority.glob) &&
		coversPath(p.globs(), other.globs())
}

// Overlaps reports whether there is a resource that both patterns match.
func (p Pattern) Overlaps(other Pattern) bool {
	return p.kind != "" && p.kind == other.kind &&
		(p.port == 0 || other.port == 0 || p.port == other.port) &&
		(p.statement == "" || other.statement == "" || p.statement == other.statement) &&
		overlapGlobs(p.authority.glob, other.authority.glob) &&
		overlapPaths(p.globs(), other.globs())
}

func (p Pattern) globs() []string {
	if p.kind == KindExec && len(p.path) == 1 && p.path[0].glob == deep {
		return []string{star, deep} // a path of a program is never empty
	}
	globs := make([]string, len(p.path))
	for i, s := range p.path {
		globs[i] = s.glob
	}
	return globs
}

// matchGlob matches the bytes of one segment. text may be a glob itself. A star
// in it is a byte that only a star matches, and represents every other byte. So
// the result is whether every segment that text matches also matches glob.
//
// Each word between two stars takes the first place that fits it. This
// suffices, because the next star can consume what a later place would.
func matchGlob(glob, text string) bool {
	word, rest, wild := strings.Cut(glob, star)
	if !wild {
		return glob == text
	}
	if !strings.HasPrefix(text, word) {
		return false
	}
	text = text[len(word):]
	for {
		word, after, wild := strings.Cut(rest, star)
		if !wild {
			return strings.HasSuffix(text, word)
		}
		i := strings.Index(text, word)
		if i < 0 {
			return false
		}
		text, rest = text[i+len(word):], after
	}
}

// matchPath matches segment by segment. Both sides can be globs; text has no
// **.
func matchPath(globs, segments []string) bool {
	return matchRun(len(globs), len(segments),
		func(i int) bool { return globs[i] == deep },
		func(i, j int) bool { return matchGlob(globs[i], segments[j]) })
}

// matchRun is the greedy wildcard match that returns to the last wildcard only.
// This suffices: an earlier wildcard could only consume what the last one can
// also consume. It takes at most patterns times texts steps. See Russ Cox,
// "Glob Matching Can Be Simple And Fast Too", https://research.swtch.com/glob.
func matchRun(patterns, texts int, wild func(i int) bool, same func(i, j int) bool) bool {
	i, j, back, next := 0, 0, -1, 0
	for i < patterns || j < texts {
		switch {
		case i < patterns && wild(i):
			back, next = i, j+1
			i++
		case i < patterns && j < texts && same(i, j):
			i, j = i+1, j+1
		case back >= 0 && next <= texts:
			i, j = back+1, next
			next++
		default:
			return false
		}
	}
	return true
}

// overlapGlobs reports whether two globs match the same segment. If both have a
// star, only what is before the first and after the last one can contradict. A
// segment that both match is then the longer beginning, what is between the
// stars of a, that of b, and the longer end.
func overlapGlobs(a, b string) bool {
	first, other := strings.IndexByte(a, star[0]), strings.IndexByte(b, star[0])
	switch {
	case first < 0:
		return matchGlob(b, a)
	case other < 0:
		return matchGlob(a, b)
	}
	head := min(first, other)
	tail := min(len(a)-1-strings.LastIndexByte(a, star[0]), len(b)-1-strings.LastIndexByte(b, star[0]))
	return a[:head] == b[:head] && a[len(a)-tail:] == b[len(b)-tail:]
}

// overlapPaths reports whether two paths of globs match the same path. For **
// the argument is that of overlapGlobs.
func overlapPaths(a, b []string) bool {
	if !slices.Contains(a, deep) {
		a, b = b, a
	}
	first, other := slices.Index(a, deep), slices.Index(b, deep)
	switch {
	case first < 0:
		return slices.EqualFunc(a, b, overlapGlobs)
	case other < 0:
		return matchRun(len(a), len(b),
			func(i int) bool { return a[i] == deep },
			func(i, j int) bool { return overlapGlobs(a[i], b[j]) })
	}
	head, tail := min(first, other), min(afterDeep(a), afterDeep(b))
	return slices.EqualFunc(a[:head], b[:head], overlapGlobs) &&
		slices.EqualFunc(a[len(a)-tail:], b[len(b)-tail:], overlapGlobs)
}

// afterDeep returns how many segments follow the last ** of a path that has one.
func afterDeep(path []string) int {
	n := 0
	for path[len(path)-1-n] != deep {
		n++
	}
	return n
}

// coverSteps bounds coversPath. Patterns that people write need a few dozen
// steps.
const coverSteps = 10_000

// coversPath reports whether every path of other matches wide. It reads a
// segment of other as one symbol, whose stars are bytes that only a star
// matches. Each ** of other is any number of symbols that only * and ** match.
// For each such number, coversPath follows the set of positions in wide that a
// match can reach (the subset construction), until no new set appears. Every
// final set must contain the end of wide.
func coversPath(wide, other []string) bool {
	if !slices.Contains(other, deep) {
		return matchPath(wide, other)
	}
	if slices.Equal(wide, other) { // also holds if the search takes too long
		return true
	}
	start := make([]byte, len(wide)+1)
	mark(wide, start, 0)
	sets, steps := map[string]bool{string(start): true}, coverSteps
	for _, symbol := range other {
		next := map[string]bool{}
		todo := sets
		if symbol == deep {
			next, symbol = maps.Clone(sets), star
			for len(todo) > 0 && steps > 0 {
				todo = advance(wide, todo, next, symbol, &steps)
			}
		} else {
			advance(wide, todo, next, symbol, &steps)
		}
		if sets = next; steps <= 0 {
			return false
		}
	}
	for set := range sets {
		if set[len(wide)] == 0 {
			return false
		}
	}
	return true
}

// advance adds to next the sets of positions one symbol after those of todo. It
// returns the sets that are new in next.
func advance(wide []string, todo, next map[string]bool, symbol string, steps *int) map[string]bool {
	found := map[string]bool{}
	for set := range todo {
		*steps--
		after := make([]byte, len(wide)+1)
		for i, glob := range wide {
			switch {
			case set[i] == 0:
			case glob == deep:
				mark(wide, after, i)
			case matchGlob(glob, symbol):
				mark(wide, after, i+1)
			}
		}
		if s := string(after); !next[s] {
			next[s], found[s] = true, true
		}
	}
	return found
}

// mark adds a position, and those after it, because ** may match nothing.
func mark(wide []string, set []byte, i int) {
	for set[i] = 1; i < len(wide) && wide[i] == deep; i++ {
		set[i+1] = 1
	}
}
