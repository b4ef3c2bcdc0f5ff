package rego

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// compiledRules holds the rules of a purpose that Go functions evaluate: those
// that only compare constants with places of the input. They take a tenth of
// topdown's time. Where such a function is unsure, topdown evaluates all rules.
// So both give the same elements and the same errors.
type compiledRules struct {
	groups []ruleGroup
	others []*compiledRule // rules that begin with another condition
	all    *plan           // every part of the input
	long   int             // how often the rules read a place that can be long
}

// ruleGroup holds the rules that begin with a comparison of one place of the
// input with a constant text. For an input, only those of its text can hold.
type ruleGroup struct {
	path  []*ast.Term
	place operand
	rules map[string][]*compiledRule
}

// compiledRule is a rule whose conditions are compiled.
type compiledRule struct {
	number     int
	set        string
	conditions []condition
	element    *element // nil: its text is that of a variable
	text       operand
	long       int // how often its conditions read a place that can be long
}

// compileRule compiles a private rule, or returns nil if only topdown can
// evaluate it.
func (r *ruleset) compileRule(rule *ast.Rule, all *plan) *compiledRule {
	n, private := r.numbers[rule]
	pair, ok := rule.Head.Key.Value.(*ast.Array)
	if !private || !ok || pair.Len() != 2 || rule.Else != nil || len(rule.Head.Args) > 0 {
		return nil
	}
	made := &compiledRule{number: n, set: r.places[n].set}
	c := &bodyCompiler{all: all, locals: map[ast.Var]operand{}}
	for _, e := range rule.Body {
		one, ok := c.condition(e)
		if !ok {
			return nil
		}
		made.conditions = append(made.conditions, one)
	}
	made.long = c.long
	if rule.Head.Key.IsGround() {
		known, err := r.element(rule.Head.Key)
		if err != nil || known.limit != nil { // budgets with one name can differ
			return nil
		}
		made.element = &known
		return made
	}
	if made.text, ok = c.operand(pair.Elem(1)); !ok {
		return nil
	}
	return made
}

// evaluate returns whether the rule holds, and its element.
func (c *compiledRule) evaluate(s *decisionState, at string) (element, verdict) {
	for _, met := range c.conditions {
		if v := met(s); v != yes {
			return element{}, v
		}
	}
	if c.element != nil {
		return *c.element, yes
	}
	text, ok := c.text.textOf(s)
	if !ok {
		return element{}, unsure
	}
	return element{rule: c.number, text: text, at: at}, yes
}

// add adds a compiled rule, in the order of the numbers.
func (c *compiledRules) add(rule *ast.Rule, made *compiledRule) {
	c.long += made.long
	path, text, ok := beginsWith(rule)
	if !ok {
		c.others = append(c.others, made)
		return
	}
	i := slices.IndexFunc(c.groups, func(g ruleGroup) bool { return slices.EqualFunc(g.path, path, (*ast.Term).Equal) })
	if i < 0 {
		i = len(c.groups)
		c.groups = append(c.groups, ruleGroup{path: path, place: placeOf(c.all, path), rules: map[string][]*compiledRule{}})
	}
	c.groups[i].rules[text] = append(c.groups[i].rules[text], made)
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

// maxLong bounds the bytes that compiled rules can read. They count no steps and
// know no deadline. So topdown, which does, evaluates a policy that reads long
// arguments in many rules.
const maxLong = 4 << 20

// ask returns the elements of the compiled rules. It returns false if one of
// them is unsure, or if the request is too long for them.
func (c *compiledRules) ask(s *decisionState, places []place) (setElements, bool) {
	if c.long > 0 && longBytes(&s.request) > maxLong/c.long {
		return nil, false
	}
	got := setElements{}
	if !got.addFrom(c.others, s, places) {
		return nil, false
	}
	for _, g := range c.groups {
		if text, ok := g.place.textOf(s); ok && !got.addFrom(g.rules[text], s, places) {
			return nil, false
		}
	}
	for set := range got {
		got.order(set)
	}
	return got, true
}

// addFrom adds the elements of rules. It returns false if a rule is unsure.
func (s setElements) addFrom(rules []*compiledRule, state *decisionState, places []place) bool {
	for _, r := range rules {
		switch e, v := r.evaluate(state, places[r.number].at); v {
		case unsure:
			return false
		case yes:
			s[r.set] = append(s[r.set], e)
		case no:
		}
	}
	return true
}

// longBytes returns about how many bytes the parts of a request have that can be
// long.
func longBytes(r *perm.Request) int {
	const each = 256 // of an entry whose parts are short
	n := len(r.Call.Args) + len(r.Output) + each*(len(r.Changes)+r.Session.Tools.Len()+len(r.Session.Recent)+len(r.Call.URLs))
	for _, list := range [][]string{
		r.Principal.Roles, r.Principal.Chain, r.Session.Labels, r.Session.Requires, r.Tool.Tags, r.Access.Resource.Segments, r.Access.Resource.Argv,
	} {
		for _, text := range list {
			n += each + len(text)
		}
	}
	if r.Call.Script != nil {
		n += len(scriptOf(r))
	}
	return n
}

// order sorts the elements of a set, each once: rows of a table can give a rule
// the same element.
func (s setElements) order(set string) {
	sortElements(s[set])
	s[set] = slices.CompactFunc(s[set], func(a, b element) bool {
		return a.rule == b.rule && a.text == b.text && a.limit == nil && b.limit == nil
	})
}

func sortElements(list []element) {
	slices.SortFunc(list, func(a, b element) int {
		if a.rule != b.rule {
			return a.rule - b.rule
		}
		return strings.Compare(a.text, b.text)
	})
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
// own. If it can compile none, it returns r.
func (r *ruleset) withCompiled(names []string, list []inputField) (*ruleset, error) {
	made, all := map[*ast.Rule]*compiledRule{}, newPlan(list, []read{{}})
	for rule := range r.numbers {
		if one := r.compileRule(rule, all); one != nil {
			made[rule] = one
		}
	}
	if len(made) == 0 {
		return r, nil
	}
	out, rest := *r, *r
	out.queries = maps.Clone(r.queries)
	if len(made) < len(r.numbers) {
		c, failed := r.without(names, made)
		if failed != nil {
			return r, nil //nolint:nilerr // a policy that loads must go on loading: topdown evaluates all its rules
		}
		rest.compiler = c
	}
	for purpose, q := range r.queries {
		q.compiled = r.compiledFor(purpose, names, made, all)
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
func (r *ruleset) compiledFor(purpose perm.Purpose, names []string, made map[*ast.Rule]*compiledRule, all *plan) *compiledRules {
	c := &compiledRules{all: all}
	for _, name := range names {
		for _, rule := range r.compiler.Modules[name].Rules {
			if one := made[rule]; one != nil && asked(one.set, purpose) {
				c.add(rule, one)
			}
		}
	}
	return c
}

// without returns a compiler of the rules that are not compiled.
func (r *ruleset) without(names []string, made map[*ast.Rule]*compiledRule) (*ast.Compiler, error) {
	mods := make(map[string]*ast.Module, len(names))
	for _, name := range names {
		written := r.compiler.Modules[name]
		mod := written.Copy()
		mod.Imports, mod.Rules = nil, nil // compiled references are already complete
		for _, rule := range written.Rules {
			if made[rule] != nil {
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
