package rego

import (
	"cmp"

	"github.com/open-policy-agent/opa/v1/ast"
)

// scope resolves the variables of a module. The compiler gives every local
// variable a unique name, so one table serves a whole module.
type scope struct {
	asked    map[ast.Var]bool // names that findVar is resolving
	compiler *ast.Compiler
	input    *shape
	values   map[ast.Var][]*ast.Term // x := value, x = value, some x in list
	domains  map[ast.Var]*ast.Term   // every x in list: the list
	gets     map[ast.Var]*ast.Expr   // x := object.get(...)
	counts   map[ast.Var]*ast.Term   // x := count(value)
	written  map[ast.Var]string      // x := lower(...), upper(...) or time.weekday(...): the function
}

// maxHops bounds how many variables a variable is followed through.
const maxHops = 32

func newScope(c *ast.Compiler, mod *ast.Module, input *shape) *scope {
	s := &scope{
		compiler: c, input: input,
		values: map[ast.Var][]*ast.Term{}, domains: map[ast.Var]*ast.Term{}, gets: map[ast.Var]*ast.Expr{}, counts: map[ast.Var]*ast.Term{},
		written: map[ast.Var]string{},
	}
	if mod == nil {
		return s
	}
	ast.WalkExprs(mod, func(e *ast.Expr) bool {
		s.learn(e)
		return false
	})
	return s
}

func (s *scope) learn(e *ast.Expr) {
	if every, ok := e.Terms.(*ast.Every); ok {
		if v, ok := every.Value.Value.(ast.Var); ok {
			s.domains[v] = every.Domain
		}
		return
	}
	ops := e.Operands()
	switch callName(e) {
	case "eq", "assign":
		if len(ops) == 2 {
			s.bind(ops[0], ops[1])
			s.bind(ops[1], ops[0])
		}
	case "count":
		if len(ops) == 2 {
			if v, ok := ops[1].Value.(ast.Var); ok {
				s.counts[v] = ops[0]
			}
		}
	case "lower", "upper", "time.weekday":
		if len(ops) == 2 {
			if v, ok := ops[1].Value.(ast.Var); ok {
				s.written[v] = callName(e)
			}
		}
	case "object.get":
		if len(ops) == 4 {
			if v, ok := ops[3].Value.(ast.Var); ok {
				s.gets[v] = e
			}
		}
	}
}

func (s *scope) bind(name, value *ast.Term) {
	v, ok := name.Value.(ast.Var)
	if !ok || v.Equal(ast.InputRootDocument.Value) || v.Equal(ast.DefaultRootDocument.Value) {
		return
	}
	s.values[v] = append(s.values[v], value)
}

// callName returns the name of the function that an expression calls, or "".
func callName(e *ast.Expr) string {
	if !e.IsCall() {
		return ""
	}
	return e.Operator().String()
}

// follow replaces a variable by its value, as far as that is known.
func (s *scope) follow(t *ast.Term) *ast.Term {
	for range maxHops {
		v, ok := t.Value.(ast.Var)
		if !ok {
			return t
		}
		if len(s.values[v]) == 0 {
			return t
		}
		t = s.values[v][0]
	}
	return t
}

// writer returns the function whose result a term is: lower, upper or
// time.weekday, or "" for any other term.
func (s *scope) writer(t *ast.Term) string {
	for range maxHops {
		v, ok := t.Value.(ast.Var)
		if !ok {
			return ""
		}
		if s.written[v] != "" {
			return s.written[v]
		}
		if len(s.values[v]) == 0 {
			return ""
		}
		t = s.values[v][0]
	}
	return ""
}

// shapeOf returns the place of the input document that a term refers to, or nil
// if it refers to none or is unknown.
func (s *scope) shapeOf(t *ast.Term) *shape { return s.find(t, maxHops) }

func (s *scope) find(t *ast.Term, hops int) *shape {
	if hops == 0 {
		return nil
	}
	switch v := t.Value.(type) {
	case ast.Var:
		return s.findVar(v, hops-1)
	case ast.Ref:
		at := s.find(v[0], hops-1)
		for _, part := range v[1:] {
			at = s.step(at, part)
		}
		return at
	default:
		return nil
	}
}

func (s *scope) findVar(v ast.Var, hops int) *shape {
	if v.Equal(ast.InputRootDocument.Value) {
		return s.input
	}
	if s.asked[v] {
		return nil // two names that are equal refer to each other
	}
	if s.asked == nil {
		s.asked = map[ast.Var]bool{}
	}
	s.asked[v] = true
	defer delete(s.asked, v)
	for _, value := range s.values[v] {
		if found := s.find(value, hops); found != nil {
			return found
		}
	}
	if list, ok := s.domains[v]; ok {
		if in := s.find(list, hops); in != nil {
			return in.items
		}
	}
	if get, ok := s.gets[v]; ok {
		return s.findGet(get, hops)
	}
	return nil
}

func (s *scope) findGet(get *ast.Expr, hops int) *shape {
	at := s.find(get.Operand(0), hops)
	path, ok := s.getPath(get)
	if !ok {
		return nil
	}
	for _, part := range path {
		at = s.step(at, part)
	}
	return at
}

// getPath returns the keys that an object.get follows.
func (s *scope) getPath(get *ast.Expr) ([]*ast.Term, bool) {
	key := s.follow(get.Operand(1))
	switch k := key.Value.(type) {
	case ast.String:
		return []*ast.Term{key}, true
	case *ast.Array:
		path := make([]*ast.Term, 0, k.Len())
		k.Foreach(func(t *ast.Term) { path = append(path, s.follow(t)) })
		return path, true
	default:
		return nil, false
	}
}

// step returns the shape of a part of a place.
func (s *scope) step(from *shape, part *ast.Term) *shape {
	if from == nil {
		return nil
	}
	name, named := s.follow(part).Value.(ast.String)
	if named && from.fields != nil {
		return from.fields[string(name)]
	}
	if from.open {
		return &shape{path: below(from.path, cmp.Or(string(name), "*")), open: true}
	}
	if from.values != nil {
		return from.values
	}
	return from.items
}

// constants returns the texts that a term can be if all of them are constants:
// a text, a list or set of texts, or a rule with only such a value.
func (s *scope) constants(t *ast.Term) []string {
	t = s.follow(t)
	var out []string
	add := func(e *ast.Term) {
		if text, ok := s.follow(e).Value.(ast.String); ok {
			out = append(out, string(text))
		}
	}
	switch v := t.Value.(type) {
	case ast.String:
		add(t)
	case *ast.Array:
		v.Foreach(add)
	case ast.Set:
		v.Foreach(add)
	case ast.Object:
		v.Foreach(func(_, value *ast.Term) { add(value) })
	case ast.Ref:
		for _, rule := range s.compiler.GetRulesExact(v) {
			out = append(out, s.ruleConstants(rule)...)
		}
	}
	return out
}

func (s *scope) ruleConstants(rule *ast.Rule) []string {
	term := rule.Head.Value
	if isPartialSet(rule) {
		term = rule.Head.Key
	}
	if term == nil || len(rule.Head.Args) > 0 || !ast.IsConstant(term.Value) {
		return nil
	}
	return s.constants(term)
}
