package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// condition reports whether a comparison holds.
type condition func(*decisionState) bool

// textCondition compares texts without terms, or returns nil if the operands
// are not known to be texts.
func textCondition(name string, a, b operand) condition {
	if name == "internal.member_2" {
		return textIn(a, b)
	}
	compare := ofTexts(name)
	if compare == nil || a.text == nil || b.text == nil {
		return nil
	}
	return func(s *decisionState) bool {
		x, one := a.text(s)
		y, other := b.text(s)
		return one && other && s.charge(len(x)) && compare(x, y)
	}
}

// ofTexts returns the function of a built-in that compares two texts, or nil.
func ofTexts(name string) func(a, b string) bool {
	switch name {
	case "eq", "equal":
		return func(a, b string) bool { return a == b }
	case "neq":
		return func(a, b string) bool { return a != b }
	case "startswith":
		return strings.HasPrefix
	case "endswith":
		return strings.HasSuffix
	case "contains":
		return strings.Contains
	}
	return nil
}

// textIn is x in list, for a text and a list of texts of the input, or a
// constant one.
func textIn(x, list operand) condition {
	if x.text == nil || list.list == nil {
		return nil
	}
	return func(s *decisionState) bool {
		text, there := x.text(s)
		texts, known := list.list(s)
		return there && known && s.charge(16*len(texts)) && slices.Contains(texts, text)
	}
}

// termCondition compares two values of any type, or returns nil if no function
// does. Where the built-in refuses an operand, topdown must.
func termCondition(name string, a, b operand) condition {
	compare := comparison(name)
	if compare == nil {
		return nil
	}
	return func(s *decisionState) bool {
		x, y := a.term(s), b.term(s)
		return x != nil && y != nil && s.charge(a.sizeOf(x)+b.sizeOf(y)) && compare(s, x, y)
	}
}

// comparison returns the function of a built-in that compares two values, or
// nil.
func comparison(name string) func(s *decisionState, a, b *ast.Term) bool {
	switch name {
	case "eq", "equal":
		return func(_ *decisionState, a, b *ast.Term) bool { return a.Equal(b) }
	case "neq":
		return func(_ *decisionState, a, b *ast.Term) bool { return !a.Equal(b) }
	case "lt":
		return func(_ *decisionState, a, b *ast.Term) bool { return a.Value.Compare(b.Value) < 0 }
	case "lte":
		return func(_ *decisionState, a, b *ast.Term) bool { return a.Value.Compare(b.Value) <= 0 }
	case "gt":
		return func(_ *decisionState, a, b *ast.Term) bool { return a.Value.Compare(b.Value) > 0 }
	case "gte":
		return func(_ *decisionState, a, b *ast.Term) bool { return a.Value.Compare(b.Value) >= 0 }
	case "internal.member_2":
		return member2
	case "startswith", "endswith", "contains":
		compare := ofTexts(name)
		return func(s *decisionState, a, b *ast.Term) bool {
			x, one := a.Value.(ast.String)
			y, other := b.Value.(ast.String)
			//mutant:check
			if !one || !other {
				s.unsure = true
				return false
			}
			return s.charge(len(x)) && compare(string(x), string(y))
		}
	}
	return nil
}

// member2 is x in list.
func member2(_ *decisionState, x, list *ast.Term) bool {
	switch list := list.Value.(type) {
	case ast.Set:
		return list.Contains(x)
	case *ast.Array:
		return list.Until(x.Equal)
	case ast.Object:
		return list.Until(func(_, v *ast.Term) bool { return x.Equal(v) })
	}
	return false
}
