package rego

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// compiledRules holds the rules of a purpose that Go functions evaluate, in a
// tenth of topdown's time. Where such a function is unsure, topdown evaluates
// all rules. So both give the same elements and the same errors.
type compiledRules struct {
	rules ruleIndex
	fixed setElements // those of rules that read nothing of the input
}

// compiledRule is a rule whose body is compiled.
type compiledRule struct {
	size int // of its frame
	run  step
}

// ruleIndex finds the rules that can hold for an input.
type ruleIndex struct {
	groups []ruleGroup
	others []compiledRule // rules that begin with another condition
	all    *plan          // every part of the input
}

// ruleGroup holds the rules that begin with a comparison of one place of the
// input with a constant text. For an input, only those of its text can hold.
type ruleGroup struct {
	path  []*ast.Term
	place operand
	rules map[string][]compiledRule
}

// add adds a compiled rule.
func (x *ruleIndex) add(rule *ast.Rule, made compiledRule) {
	path, text, ok := beginsWith(rule)
	if !ok {
		x.others = append(x.others, made)
		return
	}
	i := slices.IndexFunc(x.groups, func(g ruleGroup) bool { return slices.EqualFunc(g.path, path, (*ast.Term).Equal) })
	if i < 0 {
		i = len(x.groups)
		x.groups = append(x.groups, ruleGroup{path: path, place: placeOf(x.all, path), rules: map[string][]compiledRule{}})
	}
	x.groups[i].rules[text] = append(x.groups[i].rules[text], made)
}

// run evaluates the rules.
func (x *ruleIndex) run(s *decisionState) {
	for _, r := range x.others {
		s.run(r)
	}
	for _, g := range x.groups {
		if text, ok := g.place.textOf(s); ok {
			for _, r := range g.rules[text] {
				s.run(r)
			}
		}
	}
}

// beginsWith returns the place of the input and the text that the first
// condition of a rule compares.
func beginsWith(rule *ast.Rule) (path []*ast.Term, text string, ok bool) {
	e := rule.Body[0]
	if callName(e) != "eq" || e.Negated {
		return nil, "", false
	}
	for i, op := range e.Operands() {
		ref, place := op.Value.(ast.Ref)
		constant, known := e.Operand(1 - i).Value.(ast.String)
		if place && known && ref[0].Equal(ast.InputRootDocument) && ref.IsGround() {
			return ref[1:], string(constant), true
		}
	}
	return nil, "", false
}

// compileRule compiles a private rule, or returns false if only topdown can
// evaluate it.
func (h *helpers) compileRule(rule *ast.Rule) (made privateRule, ok bool) {
	n, private := h.rules.numbers[rule]
	if !private || rule.Else != nil || len(rule.Head.Args) > 0 {
		return made, false
	}
	made.set = h.rules.places[n].set
	last := func(of operand) step { return h.rules.adds(made.set, of) }
	if rule.Head.Key.IsGround() {
		known, err := h.rules.element(rule.Head.Key)
		if err != nil {
			return made, false
		}
		last = func(operand) step {
			return func(s *decisionState) { s.got[made.set] = append(s.got[made.set], known) }
		}
	}
	if made.compiledRule, ok = h.newBody(rule).rule(nil, rule.Body, rule.Head.Key, last); !ok {
		return made, false
	}
	if len(readsOf(h.rules.compiler, []*ast.Rule{rule})) > 0 {
		return made, true
	}
	s := &decisionState{got: setElements{}}
	s.run(made.compiledRule)
	made.always, made.fixed = s.got[made.set], true
	for i, e := range made.always {
		made.always[i].sound = h.rules.bad(made.set, e.text) == ""
	}
	return made, !s.unsure
}

// privateRule is a compiled rule of a set.
type privateRule struct {
	compiledRule
	set    string
	fixed  bool // it reads nothing of the input
	always []element
}

// adds returns a step that adds an element to a set.
func (r *ruleset) adds(set string, of operand) step {
	return func(s *decisionState) {
		t := of.term(s)
		if t == nil {
			return
		}
		e, err := r.element(t)
		//mutant:check
		if err != nil {
			s.unsure = true
			return
		}
		s.got[set] = append(s.got[set], e)
	}
}

// ask returns the elements of the compiled rules. It returns false if one of
// them is unsure.
func (c *compiledRules) ask(s *decisionState) (setElements, bool) {
	s.got = make(setElements, len(c.fixed)+4)
	for set, list := range c.fixed {
		s.got[set] = slices.Clip(list)
	}
	c.rules.run(s)
	//mutant:check
	if s.unsure {
		return nil, false
	}
	for set, list := range s.got {
		if len(list) > len(c.fixed[set]) {
			s.got.order(set)
		}
	}
	return s.got, true
}

// order sorts the elements of a set, each once: rows of a table can give a rule
// the same element.
func (s setElements) order(set string) { s[set] = ordered(s[set]) }

func ordered(list []element) []element {
	slices.SortFunc(list, element.compare)
	return slices.CompactFunc(list, func(a, b element) bool { return a.compare(b) == 0 })
}

func (e element) compare(other element) int {
	return cmp.Or(
		cmp.Compare(e.rule, other.rule), strings.Compare(e.text, other.text), compareLimits(e.limit, other.limit),
		strings.Compare(e.remember.Scope, other.remember.Scope), slices.Compare(e.remember.Keys, other.remember.Keys),
	)
}

// add adds the elements of other rules.
func (s setElements) add(other setElements) {
	for set, list := range other {
		if len(s[set]) == 0 {
			s[set] = list
			continue
		}
		if len(list) > 0 {
			s[set] = append(s[set], list...)
			s.order(set)
		}
	}
}

// withCompiled returns a ruleset with the same results that evaluates without
// topdown the rules that it can compile. The others go into a ruleset of their
// own.
func (r *ruleset) withCompiled(names []string, list []inputField) (*ruleset, error) {
	made, h := map[*ast.Rule]privateRule{}, newHelpers(r, list)
	for rule := range r.numbers {
		if one, ok := h.compileRule(rule); ok {
			made[rule] = one
		}
	}
	out, rest := *r, *r
	for rule := range r.numbers {
		if _, ok := made[rule]; !ok {
			out.notCompiled = append(out.notCompiled, rule)
		}
	}
	if len(made) == 0 {
		return &out, nil
	}
	out.queries = maps.Clone(r.queries)
	if len(made) < len(r.numbers) {
		c, failed := r.without(names, made)
		if failed != nil {
			out.notCompiled = slices.Collect(maps.Keys(r.numbers))
			return &out, nil //nolint:nilerr // a policy that loads must go on loading: topdown evaluates all its rules
		}
		rest.compiler = c
	}
	for purpose, q := range r.queries {
		q.compiled = r.compiledFor(purpose, names, made, h)
		if len(made) < len(r.numbers) {
			others, err := rest.prepare(purpose, list)
			if err != nil {
				return nil, err
			}
			q.rest, q.restBody = &rest, others.body
		}
		out.queries[purpose] = q
	}
	return &out, nil
}

// compiledFor returns the compiled rules of the sets of a purpose.
func (r *ruleset) compiledFor(purpose perm.Purpose, names []string, made map[*ast.Rule]privateRule, h *helpers) *compiledRules {
	c := &compiledRules{rules: ruleIndex{all: h.all}, fixed: setElements{}}
	for _, name := range names {
		for _, rule := range r.compiler.Modules[name].Rules {
			one, ok := made[rule]
			switch {
			case !ok || !asked(one.set, purpose):
			case one.fixed:
				c.fixed[one.set] = append(c.fixed[one.set], one.always...)
			default:
				c.rules.add(rule, one.compiledRule)
			}
		}
	}
	for set := range c.fixed {
		c.fixed.order(set)
	}
	return c
}

// without returns a compiler of the rules that are not compiled.
func (r *ruleset) without(names []string, made map[*ast.Rule]privateRule) (*ast.Compiler, error) {
	mods := make(map[string]*ast.Module, len(names))
	for _, name := range names {
		written := r.compiler.Modules[name]
		mod := written.Copy()
		mod.Imports, mod.Rules = nil, nil // compiled references are already complete
		for _, rule := range written.Rules {
			if _, compiled := made[rule]; compiled {
				continue
			}
			c := rule.Copy()
			c.Module = mod
			mod.Rules = append(mod.Rules, c)
		}
		mods[name] = mod
	}
	c, err := newCompiler()
	if err != nil {
		return nil, err
	}
	if c.Compile(mods); c.Failed() {
		return nil, fmt.Errorf("rego: rules that are not compiled: %w", c.Errors)
	}
	return c, nil
}
