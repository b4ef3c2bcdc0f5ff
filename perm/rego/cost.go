package rego

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxTaken bounds the work of compiled rules in one decision: conditions,
// iterations, calls, and a unit for each 256 bytes that they read. They know no
// deadline, so topdown, which does, decides what takes more.
const maxTaken = 1 << 16

// charge counts work, and reports whether the compiled rules may go on.
func (s *decisionState) charge(bytes int) bool {
	s.taken += 1 + bytes>>8
	s.unsure = s.unsure || s.taken > maxTaken
	return !s.unsure
}

// sizeOf returns the size of a value of the operand.
func (o operand) sizeOf(t *ast.Term) int {
	if o.size > 0 {
		return o.size
	}
	return sizeOf(t)
}

// sizeOf returns about how many bytes a comparison or a built-in reads of a
// value. What the measurement itself takes is charged with it.
func sizeOf(t *ast.Term) (n int) {
	switch v := t.Value.(type) {
	case ast.String:
		return len(v)
	case ast.Number:
		return len(v)
	case *ast.Array:
		v.Foreach(func(e *ast.Term) { n += 16 + sizeOf(e) })
	case ast.Set:
		v.Foreach(func(e *ast.Term) { n += 16 + sizeOf(e) })
	case ast.Object:
		v.Foreach(func(k, e *ast.Term) { n += 16 + sizeOf(k) + sizeOf(e) })
	}
	return n
}

// hashed returns about how many bytes a hash of a value reads: lists know
// theirs.
func hashed(t *ast.Term) int {
	if text, ok := t.Value.(ast.String); ok {
		return len(text)
	}
	return 16
}

// arrayOf returns an array, which hashes its elements.
func (s *decisionState) arrayOf(list []*ast.Term) *ast.Term {
	for _, t := range list {
		if !s.charge(hashed(t)) {
			return nil
		}
	}
	return ast.ArrayTerm(append([]*ast.Term{}, list...)...)
}

// setOf returns a set. Of equal elements that are spelt differently, such as 1
// and 1.0, topdown tells which one counts.
func (s *decisionState) setOf(list []*ast.Term) *ast.Term {
	set := ast.NewSet()
	for _, t := range list {
		if !s.charge(hashed(t)) {
			return nil
		}
		if _, text := t.Value.(ast.String); !text && set.Contains(t) {
			s.unsure = s.unsure || s.otherSpelling(set, t)
			continue
		}
		set.Add(t)
	}
	return ast.NewTerm(set)
}

func (s *decisionState) otherSpelling(set ast.Set, t *ast.Term) bool {
	return set.Until(func(e *ast.Term) bool {
		return !s.charge(sizeOf(e)) || e.Equal(t) && e.String() != t.String()
	})
}

// only returns the single value of what was found, or the preset one. Topdown
// reports rules that contradict each other, and tells which of two spellings
// counts.
func (s *decisionState) only(found []*ast.Term, preset *ast.Term) *ast.Term {
	if len(found) == 0 {
		return preset
	}
	for _, t := range found[1:] {
		//mutant:check
		if !s.charge(2*sizeOf(t)) || !t.Equal(found[0]) || t.String() != found[0].String() {
			s.unsure = true
			return nil
		}
	}
	return found[0]
}

// plainNumbers reports whether a constant spells each number in the usual way.
// Equal numbers can be spelt differently, and which spelling a text then has
// depends on the order in which topdown finds them.
func plainNumbers(t *ast.Term) bool {
	plain := true
	ast.WalkTerms(t, func(t *ast.Term) bool {
		if n, number := t.Value.(ast.Number); number {
			text := string(n)
			plain = plain && !strings.ContainsAny(text, "eE+") && (!strings.Contains(text, ".") || !strings.HasSuffix(text, "0")) && text != "-0"
		}
		return !plain
	})
	return plain
}
