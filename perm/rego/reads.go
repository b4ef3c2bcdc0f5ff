package rego

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// read is a place of the input that rules read, with everything below it.
type read struct {
	path []string // below input; empty: the whole document
	at   string   // file:line
}

// readFinder finds everything that rules read. It walks the compiled rules, in
// which imports, local names and conditions of every kind are references.
type readFinder struct {
	compiler *ast.Compiler
	seen     map[*ast.Rule]bool
	queue    []*ast.Rule
	rule     *ast.Rule // the current rule
	reads    []read
	named    map[string]bool // texts and names of functions that occur, except the text of a resource
}

func newReader(c *ast.Compiler) *readFinder {
	return &readFinder{compiler: c, seen: map[*ast.Rule]bool{}, named: map[string]bool{}}
}

// readsOf returns what rules, and everything that they refer to, read.
func readsOf(c *ast.Compiler, rules []*ast.Rule) []read {
	return newReader(c).all(rules)
}

func (r *readFinder) all(rules []*ast.Rule) []read {
	r.add(rules)
	for len(r.queue) > 0 {
		r.rule, r.queue = r.queue[0], r.queue[1:]
		r.visit(r.rule)
	}
	return r.reads
}

func (r *readFinder) add(rules []*ast.Rule) {
	for _, rule := range rules {
		if !r.seen[rule] {
			r.seen[rule] = true
			r.queue = append(r.queue, rule)
		}
	}
}

func (r *readFinder) visit(x any) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Head:
			r.tail(x.Reference)
		case *ast.With: // reads the replacement, not the replaced place
			r.visit(x.Value)
			return true
		case *ast.Term:
			return r.term(x)
		case ast.Ref:
			r.ref(x, nil)
			return true
		}
		return false
	}).Walk(x)
}

// term reports whether t needs no further walk.
func (r *readFinder) term(t *ast.Term) bool {
	switch v := t.Value.(type) {
	case ast.Ref:
		r.ref(v, t.Location)
		return true
	case ast.Var:
		if v.Equal(ast.InputRootDocument.Value) {
			r.input(nil, t.Location)
		}
		r.named[string(v)] = true
	case ast.String:
		r.named[string(v)] = true
	}
	return false
}

func (r *readFinder) ref(ref ast.Ref, loc *ast.Location) {
	switch {
	case ref[0].Equal(ast.InputRootDocument):
		r.input(ref[1:], loc)
	case ref[0].Equal(ast.DefaultRootDocument):
		r.add(r.compiler.GetRulesDynamicWithOpts(ref, ast.RulesOptions{IncludeHiddenModules: true}))
	default:
		r.visit(ref[0])
	}
	r.tail(ref)
}

// tail walks the terms that a reference is computed from.
func (r *readFinder) tail(ref ast.Ref) {
	for i := 1; i < len(ref); i++ {
		_, constant := ref[i].Value.(ast.String)
		if of := ast.String("resource"); !constant || of.Compare(ref[i-1].Value) != 0 {
			r.visit(ref[i])
		}
	}
}

// input records what a reference reads: the path up to its first part that is
// not a name, and everything below.
func (r *readFinder) input(parts []*ast.Term, loc *ast.Location) {
	var path []string
	for _, p := range parts {
		name, ok := p.Value.(ast.String)
		if !ok {
			break
		}
		path = append(path, string(name))
	}
	r.reads = append(r.reads, read{path: path, at: at(orRule(loc, r.rule))})
}
