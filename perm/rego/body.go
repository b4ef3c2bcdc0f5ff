package rego

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// step evaluates the rest of a body. It is called once for each way in which the
// conditions before it hold, and finds all ways in which the rest holds. So it
// evaluates at least what topdown evaluates, and fails wherever topdown fails.
type step func(*decisionState)

// link puts a condition before the rest of a body.
type link func(next step) step

// chain returns the body that links make.
func chain(links []link, last step) step {
	for i := len(links) - 1; i >= 0; i-- {
		last = links[i](last)
	}
	return last
}

// bodyCompiler compiles the body of one rule. It relies on the order that OPA's
// compiler gave the body: a variable has a value before it is read.
type bodyCompiler struct {
	*helpers
	locals map[ast.Var]operand
	outer  ast.VarSet // variables of the bodies around this one
	own    ast.VarSet // variables of this body, without those of bodies inside it
	size   int        // of the frame: variables whose values change during the rule
}

func (h *helpers) newBody(rule *ast.Rule) *bodyCompiler {
	return &bodyCompiler{helpers: h, locals: map[ast.Var]operand{}, own: varsOf(rule)}
}

// inner returns the compiler of a body inside this one, whose variables the rest
// of this body does not see.
func (c *bodyCompiler) inner(of any) *bodyCompiler {
	outer := c.outer.Copy()
	outer.Update(c.own)
	return &bodyCompiler{helpers: c.helpers, locals: maps.Clone(c.locals), outer: outer, own: varsOf(of), size: c.size}
}

// varsOf returns the variables of a rule or a body, without those of bodies
// inside it.
func varsOf(x any) ast.VarSet {
	v := ast.NewVarVisitor().WithParams(ast.VarVisitorParams{SkipClosures: true})
	v.Walk(x)
	return v.Vars()
}

// rule compiles a body and a head, whose value goes to last.
func (c *bodyCompiler) rule(params []link, body ast.Body, head *ast.Term, last func(operand) step) (compiledRule, bool) {
	links, ok := c.body(body)
	if !ok {
		return compiledRule{}, false
	}
	of, more, ok := c.value(head)
	if !ok {
		return compiledRule{}, false
	}
	return compiledRule{size: c.size, run: chain(slices.Concat(params, links, more), last(of))}, true
}

// slot returns a new variable of the frame.
func (c *bodyCompiler) slot() int {
	c.size++
	return c.size - 1
}

// body compiles expressions. It returns false for what only topdown can
// evaluate.
func (c *bodyCompiler) body(b ast.Body) (links []link, ok bool) {
	for _, e := range b {
		more, ok := c.expr(e)
		if !ok {
			return nil, false
		}
		links = append(links, more...)
	}
	return links, true
}

func (c *bodyCompiler) expr(e *ast.Expr) ([]link, bool) {
	//mutant:check
	if len(e.With) > 0 {
		return nil, false
	}
	if !e.Negated {
		return c.positive(e)
	}
	in := c.inner(e)
	links, ok := in.positive(e)
	c.size = max(c.size, in.size)
	if !ok {
		return nil, false
	}
	of := chain(links, (*decisionState).hit)
	return []link{func(next step) step {
		return func(s *decisionState) {
			if mark := s.query(of); len(s.drop(mark)) == 0 {
				next(s)
			}
		}
	}}, true
}

func (c *bodyCompiler) positive(e *ast.Expr) ([]link, bool) {
	switch terms := e.Terms.(type) {
	case *ast.Term:
		return c.defined(terms)
	case []*ast.Term:
		return c.call(e)
	}
	return nil, false
}

// defined compiles a value as a condition: it holds unless it is undefined or
// false.
func (c *bodyCompiler) defined(t *ast.Term) ([]link, bool) {
	of, links, ok := c.value(t)
	if !ok {
		return nil, false
	}
	return append(links, when(func(s *decisionState) bool {
		v := of.term(s)
		return v != nil && !v.Equal(ast.InternedTerm(false))
	})), true
}

// when returns a link that goes on if a condition holds.
func when(holds condition) link {
	return func(next step) step {
		return func(s *decisionState) {
			if holds(s) {
				next(s)
			}
		}
	}
}

// unify compiles a = b: it gives a variable its value, or compares two values.
func (c *bodyCompiler) unify(a, b *ast.Term) ([]link, bool) {
	if _, free := c.free(a); !free {
		a, b = b, a
	}
	v, free := c.free(a)
	if !free {
		return c.compare("eq", []*ast.Term{a, b})
	}
	of, links, ok := c.value(b)
	if !ok {
		return nil, false
	}
	if of.fixed {
		return append(links, when(of.there)), c.bind(v, of)
	}
	at := c.slot()
	return append(links, assign(at, of)), c.bind(v, slotOperand(at))
}

// bind gives a variable its value. It returns false if the variable has one
// already, as k has in o[k] = k once the reference is compiled: the two values
// must then be equal, which topdown finds out.
func (c *bodyCompiler) bind(v ast.Var, of operand) bool {
	_, known := c.locals[v]
	//mutant:check
	if known {
		return false
	}
	c.locals[v] = of
	return true
}

// assign sets a variable of the frame.
func assign(at int, of operand) link {
	return func(next step) step {
		return func(s *decisionState) {
			if t := of.term(s); t != nil {
				s.slots[s.base+at] = t
				next(s)
			}
		}
	}
}

// free reports whether a term is a variable that has no value yet. A variable of
// a body around this one gets its value there: if it has none yet, only topdown
// can tell what it is.
func (c *bodyCompiler) free(t *ast.Term) (ast.Var, bool) {
	v, ok := t.Value.(ast.Var)
	if !ok || c.outer.Contains(v) {
		return "", false
	}
	_, known := c.locals[v]
	return v, !known
}

// values compiles the operands of an expression.
func (c *bodyCompiler) values(ops []*ast.Term) (all []operand, links []link, ok bool) {
	for _, op := range ops {
		of, more, ok := c.value(op)
		if !ok {
			return nil, nil, false
		}
		all, links = append(all, of), append(links, more...)
	}
	return all, links, true
}

// compare compiles a comparison of two values.
func (c *bodyCompiler) compare(name string, ops []*ast.Term) ([]link, bool) {
	args, links, ok := c.values(ops)
	if !ok || len(args) != 2 {
		return nil, false
	}
	holds := textCondition(name, args[0], args[1])
	if holds == nil {
		holds = termCondition(name, args[0], args[1])
	}
	return append(links, when(holds)), holds != nil
}
