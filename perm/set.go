package perm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Set is authority: the accesses that a grant holds. It is immutable and safe
// for concurrent use. The zero Set covers nothing.
//
// A set holds every access that one of its accesses matches, without its
// excepts. An except wins over every access that it was made on. Actions are
// separate: write on a file does not include delete. An access without a
// method, or on a table without a statement, matches all of them. The set
// covers it only if it covers all of them. An unbound parameter matches what it
// can be bound to, so a set of a tool's needs is the upper bound of its calls.
type Set struct {
	clauses []clause
}

// clause holds the accesses for which all of its rules and none of its excepts
// hold. It has several rules if patterns were intersected: the paths that two
// patterns share are not always those of one pattern.
type clause struct {
	all    []rule
	except []rule
}

// NewSet compiles accesses. It returns an error if one of them is invalid.
func NewSet(accesses ...ResourceAccess) (Set, error) {
	rules, err := compileAll(accesses)
	if err != nil {
		return Set{}, err
	}
	clauses := make([]clause, len(rules))
	for i, r := range rules {
		clauses[i] = clause{all: []rule{r}}
	}
	return setOf(clauses), nil
}

// Except returns s without the given accesses and without all that they match.
// The result does not cover an access that an except only overlaps.
func (s Set) Except(accesses ...ResourceAccess) (Set, error) {
	rules, err := compileAll(accesses)
	if err != nil {
		return Set{}, err
	}
	if len(rules) == 0 {
		return s, nil
	}
	var rest []clause
	for _, c := range s.clauses {
		c.except = append(slices.Clone(c.except), rules...)
		if c, ok := c.simplify(); ok {
			rest = append(rest, c)
		}
	}
	return setOf(rest), nil
}

// Allows reports whether s holds one exact access. It is false for an invalid
// access or an access on a pattern.
func (s Set) Allows(a ResourceAccess) bool {
	r, err := ParseResource(a.Resource)
	return err == nil && s.AllowsResource(a.Action, r, a.Method)
}

// AllowsResource is Allows for a parsed resource.
func (s Set) AllowsResource(action Action, r Resource, method string) bool {
	if r.IsZero() {
		return false
	}
	asked, err := newRule(action, method, r.pattern())
	return err == nil && s.covers(asked)
}

// Covers reports whether s holds every access that a matches; a may be on a
// pattern. One access of s must cover all of a. Several accesses of s that
// cover a only together do not count.
func (s Set) Covers(a ResourceAccess) bool {
	asked, err := a.compile()
	return err == nil && s.covers(asked)
}

// Intersect returns exactly what s and other both hold. Its cost follows the
// number of clauses, and the pairs whose accesses share the names before their
// first wildcard. So only thousands of patterns such as **/name on one root are
// slow.
func (s Set) Intersect(other Set) Set {
	shared, mine, theirs := split(s.clauses, other.clauses)
	var both widest
	for _, c := range shared { // a shared clause covers what it has in common with any other
		if c, ok := c.simplify(); ok {
			both.add(c)
		}
	}
	var index clauseIndex
	for i, d := range theirs {
		index.add(i, d)
	}
	for _, c := range mine {
		for _, i := range index.near(c) {
			d := theirs[i]
			joined := clause{all: slices.Concat(c.all, d.all), except: slices.Concat(c.except, d.except)}
			if joined, ok := joined.simplify(); ok {
				both.add(joined)
			}
		}
	}
	return both.set()
}

// IsEmpty reports whether s covers nothing. It can be false for a set whose
// excepts only together remove everything.
func (s Set) IsEmpty() bool { return len(s.clauses) == 0 }

// Accesses returns accesses that together match at least what s holds. People
// read them, and the runtime sizes a sandbox by them. The result is an upper
// bound: it omits excepts, and may omit one side of an intersection.
func (s Set) Accesses() []ResourceAccess {
	var list []ResourceAccess
	for _, c := range s.clauses {
		if a := c.all[0].access(); !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// MarshalJSON writes a list of lists. Each inner list holds texts of accesses
// that must all hold, and excepts with "except " before them.
func (s Set) MarshalJSON() ([]byte, error) {
	lists := make([][]string, len(s.clauses))
	for i, c := range s.clauses {
		lists[i] = c.texts()
	}
	return json.Marshal(lists)
}

// UnmarshalJSON parses what MarshalJSON writes.
func (s *Set) UnmarshalJSON(data []byte) error {
	var lists [][]string
	if err := json.Unmarshal(data, &lists); err != nil {
		return fmt.Errorf("not a valid set: %w", err)
	}
	clauses := make([]clause, len(lists))
	for i, texts := range lists {
		var err error
		if clauses[i], err = parseClause(texts); err != nil {
			return fmt.Errorf("not a valid set: list %d: %w", i+1, err)
		}
	}
	*s = setOf(clauses)
	return nil
}

func compileAll(accesses []ResourceAccess) ([]rule, error) {
	rules := make([]rule, len(accesses))
	for i, a := range accesses {
		var err error
		if rules[i], err = a.compile(); err != nil {
			return nil, fmt.Errorf("access %d: %w", i+1, err)
		}
	}
	return rules, nil
}

func (s Set) covers(asked rule) bool {
	return slices.ContainsFunc(s.clauses, func(c clause) bool { return c.covers(asked) })
}

// setOf returns the set of clauses, each of them once. A large set is made for
// the tools of a whole runtime, so it does not compare all with all.
func setOf(clauses []clause) Set {
	kept := make([]clause, 0, len(clauses))
	seen := make(map[string][]int, len(clauses)) // by the text of the first rule
	for _, c := range clauses {
		text := c.all[0].pattern.text
		if slices.ContainsFunc(seen[text], func(i int) bool { return kept[i].same(c) }) {
			continue
		}
		seen[text] = append(seen[text], len(kept))
		kept = append(kept, c)
	}
	return Set{clauses: slices.Clip(kept)}
}

func parseClause(texts []string) (clause, error) {
	var c clause
	for i, text := range texts {
		text, except := strings.CutPrefix(text, "except ")
		_, r, err := readAccess(text)
		if err != nil {
			return clause{}, fmt.Errorf("access %d: %w", i+1, err)
		}
		if except {
			c.except = append(c.except, r)
		} else {
			c.all = append(c.all, r)
		}
	}
	if len(c.all) == 0 { // without rules, the clause holds for everything
		return clause{}, errors.New("no access beside the excepts")
	}
	return c, nil
}

func (c clause) texts() []string {
	texts := make([]string, 0, len(c.all)+len(c.except))
	for _, r := range c.all {
		texts = append(texts, r.access().String())
	}
	for _, r := range c.except {
		texts = append(texts, "except "+r.access().String())
	}
	return texts
}

func (c clause) same(d clause) bool {
	return slices.EqualFunc(c.all, d.all, rule.same) && slices.EqualFunc(c.except, d.except, rule.same)
}

// covers reports whether c covers a rule. It is false for a clause without
// rules, which otherwise covers everything.
func (c clause) covers(asked rule) bool {
	return len(c.all) > 0 &&
		!slices.ContainsFunc(c.all, func(r rule) bool { return !r.covers(asked) }) &&
		!slices.ContainsFunc(c.except, func(r rule) bool { return r.overlaps(asked) })
}

// coversClause reports whether c certainly covers everything that d covers.
func (c clause) coversClause(d clause) bool {
	for _, r := range c.all {
		if !slices.ContainsFunc(d.all, r.covers) {
			return false
		}
	}
	for _, e := range c.except {
		apart := slices.ContainsFunc(d.all, func(r rule) bool { return !e.overlaps(r) })
		if !apart && !slices.ContainsFunc(d.except, func(f rule) bool { return f.covers(e) }) {
			return false
		}
	}
	return true
}

// simplify removes what does not change the meaning of c. It returns false if c
// holds for nothing.
func (c clause) simplify() (clause, bool) {
	c.all = without(c.all, func(r, o rule) bool { return r.covers(o) })
	c.except = without(c.except, func(r, o rule) bool { return o.covers(r) })
	for i, r := range c.all {
		for _, o := range c.all[i+1:] {
			if !r.overlaps(o) {
				return clause{}, false
			}
		}
		if slices.ContainsFunc(c.except, func(e rule) bool { return e.covers(r) }) {
			return clause{}, false
		}
	}
	c.except = slices.DeleteFunc(c.except, func(e rule) bool {
		return slices.ContainsFunc(c.all, func(r rule) bool { return !e.overlaps(r) })
	})
	if len(c.except) == 0 {
		c.except = nil // same as after reading JSON
	}
	return c, true
}

// without returns the rules that no other rule makes superfluous. Of rules that
// make each other superfluous it keeps the first.
func without(rules []rule, superfluous func(r, beside rule) bool) []rule {
	var kept []rule
	for _, r := range rules {
		if slices.ContainsFunc(kept, func(k rule) bool { return superfluous(r, k) }) {
			continue
		}
		kept = slices.DeleteFunc(kept, func(k rule) bool { return superfluous(k, r) })
		kept = append(kept, r)
	}
	return kept
}
