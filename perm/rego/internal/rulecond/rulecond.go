// Package rulecond describes the conditions of compiled rules as comparisons
// of input paths with constants, as far as it can follow them: through
// variables, helper rules, functions and data. It is a guide for a search of
// inputs. It never decides anything, so an omission only costs the search.
package rulecond

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Condition compares a place of the input. Op is eq, neq, lt, lte, gt, gte,
// startswith, endswith, contains, glob, regex, same or defined. An op with the
// prefix count: compares the length of the value.
type Condition struct {
	// Path is the place below input. A step "[]" is any element of a list,
	// "[2]" an element, "{a.b}" the text at input.a.b.
	Path   []string `json:"path"`
	Op     string   `json:"op"`
	Values []any    `json:"values,omitempty"` // alternatives: text, float64, bool or nil
	Other  []string `json:"other,omitempty"`  // op same: the other place
	Not    bool     `json:"not,omitempty"`
}

// Bounds of what is followed.
const (
	maxAlternatives = 24
	maxDepth        = 12
	maxConditions   = 40
	maxValues       = 400
)

// Finder finds the conditions of the rules of one compiler.
type Finder struct {
	compiler *ast.Compiler
	data     map[string]any
	scopes   map[*ast.Module]map[ast.Var]*ast.Expr
}

// New returns a Finder. The finder does not change its arguments.
func New(c *ast.Compiler, data map[string]any) *Finder {
	return &Finder{compiler: c, data: data, scopes: map[*ast.Module]map[ast.Var]*ast.Expr{}}
}

// Of returns the alternatives in which a rule can hold. Each is a list of
// conditions.
func (f *Finder) Of(rule *ast.Rule) [][]Condition {
	return f.body(rule.Body, f.frame(rule), maxDepth)
}

// frame is the body of a rule with the operands of its call.
type frame struct {
	scope map[ast.Var]*ast.Expr
	args  map[ast.Var]operand
}

type operand struct {
	term *ast.Term
	in   *frame
}

func (f *Finder) frame(rule *ast.Rule) *frame {
	s, known := f.scopes[rule.Module]
	if !known {
		s = map[ast.Var]*ast.Expr{}
		ast.WalkExprs(rule.Module, func(e *ast.Expr) bool {
			bind(s, e)
			return false
		})
		f.scopes[rule.Module] = s
	}
	return &frame{scope: s, args: map[ast.Var]operand{}}
}

// bind records the expression that gives a variable its value. The compiler
// gives each variable of a module its own name.
func bind(s map[ast.Var]*ast.Expr, e *ast.Expr) {
	if every, ok := e.Terms.(*ast.Every); ok {
		if v, ok := every.Value.Value.(ast.Var); ok {
			s[v] = e
		}
		return
	}
	if !e.IsCall() || e.Negated {
		return
	}
	ops := e.Operands()
	switch name := e.Operator().String(); {
	case (name == "eq" || name == "assign") && len(ops) == 2:
		for i, op := range ops {
			v, ok := op.Value.(ast.Var)
			if _, known := s[v]; ok && !known && !root(v) && !ops[1-i].Equal(op) {
				s[v] = e
				return
			}
		}
	case len(ops) > 1:
		if v, ok := ops[len(ops)-1].Value.(ast.Var); ok && !root(v) {
			if _, known := s[v]; !known {
				s[v] = e
			}
		}
	}
}

func root(v ast.Var) bool {
	return v.Equal(ast.InputRootDocument.Value) || v.Equal(ast.DefaultRootDocument.Value)
}

// body returns the alternatives of a conjunction.
func (f *Finder) body(body ast.Body, in *frame, depth int) [][]Condition {
	all := [][]Condition{nil}
	if depth == 0 {
		return all
	}
	for _, e := range body {
		all = both(all, f.expr(e, in, depth))
	}
	return all
}

// both joins each alternative of a with each of b. An empty list says nothing.
func both(a, b [][]Condition) (out [][]Condition) {
	switch {
	case len(b) == 0:
		return a
	case len(a) == 0:
		return b
	}
	for _, y := range b { // the first alternative of a with each of b, then the next
		for _, x := range a {
			if len(out) < maxAlternatives && len(x)+len(y) <= maxConditions {
				out = append(out, append(append([]Condition(nil), x...), y...))
			}
		}
	}
	if len(out) == 0 {
		return a
	}
	return out
}

// negated returns the alternatives in which none of the given ones holds.
func negated(all [][]Condition) [][]Condition {
	out := [][]Condition{nil}
	for _, one := range all {
		var fails [][]Condition
		for _, c := range one {
			c.Not = !c.Not
			fails = append(fails, []Condition{c})
		}
		out = both(out, fails)
	}
	return out
}

func (f *Finder) expr(e *ast.Expr, in *frame, depth int) [][]Condition {
	var all [][]Condition
	switch terms := e.Terms.(type) {
	case *ast.Every:
		all = f.body(terms.Body, in, depth-1)
	case *ast.Term:
		all = f.holds(terms, in, depth)
	default:
		if e.IsCall() {
			all = f.call(e, in, depth)
		}
	}
	if e.Negated {
		return negated(all)
	}
	return both(all, f.inside(e, in, depth))
}

// inside returns the conditions of the comprehensions of an expression.
func (f *Finder) inside(e *ast.Expr, in *frame, depth int) [][]Condition {
	all := [][]Condition{nil}
	add := func(b ast.Body) bool {
		all = both(all, f.body(b, in, depth-1))
		return true
	}
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.ArrayComprehension:
			return add(x.Body)
		case *ast.SetComprehension:
			return add(x.Body)
		case *ast.ObjectComprehension:
			return add(x.Body)
		case *ast.Every:
			return true
		}
		return false
	}).Walk(e)
	return all
}

// holds returns the alternatives in which a term is defined and not false.
func (f *Finder) holds(t *ast.Term, in *frame, depth int) [][]Condition {
	all := f.keys(t, in, depth)
	all = both(all, f.rulesHold(t, in, depth, nil))
	if v := f.value(t, in, depth); v.path != nil {
		all = both(all, [][]Condition{{{Path: v.path, Op: "defined"}}})
	}
	return all
}

// rulesHold returns the alternatives in which a rule that a term names has a
// value, one of the wanted values if there are any.
func (f *Finder) rulesHold(t *ast.Term, in *frame, depth int, want []any) (all [][]Condition) {
	ref, ok := t.Value.(ast.Ref)
	if !ok || !ref[0].Equal(ast.DefaultRootDocument) || depth <= 1 {
		return nil
	}
	for _, rule := range f.rules(ref) {
		if len(rule.Head.Args) > 0 || rule.Default {
			continue
		}
		its := f.frame(rule)
		if want != nil && rule.Head.Value != nil {
			if got := f.value(rule.Head.Value, its, depth-1); got.path == nil && len(got.values) > 0 && !overlap(got.values, want) {
				continue
			}
		}
		some := f.body(rule.Body, its, depth-1)
		if rule.Head.Key != nil && len(ref) > 1 { // a set: the key that is looked up
			some = both(some, f.compare("eq", rule.Head.Key, its, ref[len(ref)-1], in, depth-1))
		}
		all = append(all, some...)
	}
	return all[:min(len(all), maxAlternatives)]
}

func overlap(a, b []any) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				return true
			}
		}
	}
	return false
}

// rules returns the rules that a reference can name, in source order.
func (f *Finder) rules(ref ast.Ref) []*ast.Rule {
	all := f.compiler.GetRulesDynamicWithOpts(ref, ast.RulesOptions{IncludeHiddenModules: true})
	slices.SortFunc(all, func(a, b *ast.Rule) int { return a.Loc().Compare(b.Loc()) })
	return all
}
