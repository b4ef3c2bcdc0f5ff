package rego

import (
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

// frame is the state of one rule during a decision.
type frame struct {
	input  *ast.Term
	locals [maxLocals]*ast.Term
}

// maxLocals bounds the variables of a compiled rule.
const maxLocals = 32

// condition is a compiled expression of a rule's body.
type condition func(*frame) verdict

// operand returns a value of an expression, or nil if it is undefined.
type operand func(*frame) *ast.Term

// bodyCompiler compiles the body of one rule. It relies on the order that OPA's
// compiler gave the body: a variable has a value before it is read.
type bodyCompiler struct {
	locals map[ast.Var]int
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
	return func(f *frame) verdict {
		switch of(f) {
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
	get, ok := c.operand(t)
	if !ok {
		return nil, false
	}
	return func(f *frame) verdict {
		v := get(f)
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
	if name == "glob.match" && len(args) == 3 {
		return builtin(name, args), true
	}
	if compare := comparison(name); compare != nil && len(args) == 2 {
		return func(f *frame) verdict {
			a, b := args[0](f), args[1](f)
			if a == nil || b == nil {
				return no
			}
			return compare(a, b)
		}, true
	}
	return nil, false
}

// assign gives a variable its value.
func (c *bodyCompiler) assign(v ast.Var, of *ast.Term) (condition, bool) {
	get, ok := c.operand(of)
	slot := len(c.locals)
	if !ok || slot == maxLocals {
		return nil, false
	}
	c.locals[v] = slot
	return func(f *frame) verdict {
		f.locals[slot] = get(f)
		return holds(f.locals[slot] != nil)
	}, true
}

func (c *bodyCompiler) free(t *ast.Term) (ast.Var, bool) {
	v, ok := t.Value.(ast.Var)
	if !ok {
		return "", false
	}
	_, known := c.locals[v]
	return v, !known
}

// operand compiles a constant, a variable that has a value, or a place of the
// input.
func (c *bodyCompiler) operand(t *ast.Term) (operand, bool) {
	switch v := t.Value.(type) {
	case ast.Var:
		slot, known := c.locals[v]
		return func(f *frame) *ast.Term { return f.locals[slot] }, known
	case ast.Ref:
		if !v[0].Equal(ast.InputRootDocument) || !v.IsGround() {
			return nil, false
		}
		if !isText(v) {
			c.long++
		}
		path := v[1:]
		return func(f *frame) *ast.Term { return valueAt(f.input, path) }, true
	case ast.Call, *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
		return nil, false
	}
	return func(*frame) *ast.Term { return t }, ast.IsConstant(t.Value)
}

// valueAt returns the value at a path of the input, or nil if there is none.
func valueAt(t *ast.Term, path []*ast.Term) *ast.Term {
	for _, name := range path {
		switch v := t.Value.(type) {
		case ast.Object:
			t = v.Get(name)
		case *ast.Array:
			t = v.Get(name)
		default:
			return nil
		}
		if t == nil {
			return nil
		}
	}
	return t
}

// comparison returns the function of a built-in that compares two values, or
// nil. Where the built-in refuses an operand, the function is unsure, so that
// topdown refuses it.
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
	case "startswith":
		return ofTexts(strings.HasPrefix)
	case "endswith":
		return ofTexts(strings.HasSuffix)
	case "contains":
		return ofTexts(strings.Contains)
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

func ofTexts(compare func(a, b string) bool) func(a, b *ast.Term) verdict {
	return func(a, b *ast.Term) verdict {
		x, one := a.Value.(ast.String)
		y, other := b.Value.(ast.String)
		if !one || !other {
			return unsure
		}
		return holds(compare(string(x), string(y)))
	}
}

// builtin calls OPA's own function.
func builtin(name string, args []operand) condition {
	call := topdown.GetBuiltin(name)
	return func(f *frame) verdict {
		given := make([]*ast.Term, len(args))
		for i, arg := range args {
			if given[i] = arg(f); given[i] == nil {
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
