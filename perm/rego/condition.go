package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// verdict is what a compiled condition or rule says of an input.
type verdict uint8

const (
	unsure verdict = iota // only topdown can tell, or refuses
	no
	yes
)

func holds(ok bool) verdict {
	if ok {
		return yes
	}
	return no
}

// condition is a compiled expression of a rule's body.
type condition func(*decisionState) verdict

// bodyCompiler compiles the body of one rule. It relies on the order that OPA's
// compiler gave the body: a variable has a value before it is read. No value
// changes during a decision, so a variable stands for its value.
type bodyCompiler struct {
	all    *plan // every part of the input
	locals map[ast.Var]operand
	long   int // how often the body reads a place that can be long
}

// condition compiles an expression. It returns false for what only topdown can
// evaluate.
func (c *bodyCompiler) condition(e *ast.Expr) (condition, bool) {
	if len(e.With) > 0 {
		return nil, false
	}
	made, ok := condition(nil), false
	switch terms := e.Terms.(type) {
	case *ast.Term:
		made, ok = c.defined(terms)
	case []*ast.Term:
		made, ok = c.call(e)
	}
	if ok && e.Negated {
		return negated(made), true
	}
	return made, ok
}

func negated(of condition) condition {
	return func(s *decisionState) verdict {
		switch of(s) {
		case yes:
			return no
		case no:
			return yes
		default:
			return unsure
		}
	}
}

// defined compiles a value as a condition: it holds unless it is undefined or
// false.
func (c *bodyCompiler) defined(t *ast.Term) (condition, bool) {
	of, ok := c.operand(t)
	if !ok {
		return nil, false
	}
	return func(s *decisionState) verdict {
		v := of.term(s)
		return holds(v != nil && !v.Equal(ast.InternedTerm(false)))
	}, true
}

func (c *bodyCompiler) call(e *ast.Expr) (condition, bool) {
	name, ops := callName(e), e.Operands()
	if name == "eq" && len(ops) == 2 && !e.Negated {
		for i, op := range ops {
			if v, free := c.free(op); free {
				return c.assign(v, ops[1-i])
			}
		}
	}
	args := make([]operand, len(ops))
	for i, op := range ops {
		var ok bool
		if args[i], ok = c.operand(op); !ok {
			return nil, false
		}
	}
	switch {
	case name == "glob.match" && len(args) == 3:
		return builtin(name, args), true
	case len(args) != 2:
		return nil, false
	}
	if made := textCondition(name, args[0], args[1]); made != nil {
		return made, true
	}
	return termCondition(name, args[0], args[1])
}

// assign gives a variable its value.
func (c *bodyCompiler) assign(v ast.Var, of *ast.Term) (condition, bool) {
	value, ok := c.operand(of)
	if !ok {
		return nil, false
	}
	c.locals[v] = value
	return func(s *decisionState) verdict { return holds(value.there(s)) }, true
}

func (c *bodyCompiler) free(t *ast.Term) (ast.Var, bool) {
	v, ok := t.Value.(ast.Var)
	if !ok {
		return "", false
	}
	_, known := c.locals[v]
	return v, !known
}

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
	return func(s *decisionState) verdict {
		x, one := a.text(s)
		y, other := b.text(s)
		return holds(one && other && compare(x, y))
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
	return func(s *decisionState) verdict {
		text, there := x.text(s)
		texts, known := list.list(s)
		return holds(there && known && slices.Contains(texts, text))
	}
}

// termCondition compares two values of any type. Where the built-in refuses an
// operand, the condition is unsure, so that topdown refuses it.
func termCondition(name string, a, b operand) (condition, bool) {
	compare := comparison(name)
	if compare == nil {
		return nil, false
	}
	return func(s *decisionState) verdict {
		x, y := a.term(s), b.term(s)
		if x == nil || y == nil {
			return no
		}
		return compare(x, y)
	}, true
}

func comparison(name string) func(a, b *ast.Term) verdict {
	switch name {
	case "eq", "equal":
		return func(a, b *ast.Term) verdict { return holds(a.Equal(b)) }
	case "neq":
		return func(a, b *ast.Term) verdict { return holds(!a.Equal(b)) }
	case "lt":
		return func(a, b *ast.Term) verdict { return holds(a.Value.Compare(b.Value) < 0) }
	case "lte":
		return func(a, b *ast.Term) verdict { return holds(a.Value.Compare(b.Value) <= 0) }
	case "gt":
		return func(a, b *ast.Term) verdict { return holds(a.Value.Compare(b.Value) > 0) }
	case "gte":
		return func(a, b *ast.Term) verdict { return holds(a.Value.Compare(b.Value) >= 0) }
	case "internal.member_2":
		return member2
	case "startswith", "endswith", "contains":
		compare := ofTexts(name)
		return func(a, b *ast.Term) verdict {
			x, one := a.Value.(ast.String)
			y, other := b.Value.(ast.String)
			if !one || !other {
				return unsure
			}
			return holds(compare(string(x), string(y)))
		}
	}
	return nil
}

// member2 is x in list.
func member2(x, list *ast.Term) verdict {
	switch list := list.Value.(type) {
	case ast.Set:
		return holds(list.Contains(x))
	case *ast.Array:
		return holds(list.Until(x.Equal))
	case ast.Object:
		return holds(list.Until(func(_, v *ast.Term) bool { return x.Equal(v) }))
	}
	return no
}

// builtin calls OPA's own function.
func builtin(name string, args []operand) condition {
	call := topdown.GetBuiltin(name)
	return func(s *decisionState) verdict {
		given := make([]*ast.Term, len(args))
		for i, arg := range args {
			if given[i] = arg.term(s); given[i] == nil {
				return no
			}
		}
		said := unsure
		err := call(topdown.BuiltinContext{}, given, func(t *ast.Term) error {
			said = holds(t.Equal(ast.InternedTerm(true)))
			return nil
		})
		if err != nil {
			return unsure
		}
		return said
	}
}
