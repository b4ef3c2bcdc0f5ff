package rego

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
)

// helpers compiles what the rules of a policy refer to, each once: documents
// that rules define, functions, and the data.
type helpers struct {
	rules     *ruleset
	all       *plan // every part of the input
	documents map[string]*helperDocument
	functions map[string]*helperFunction
	left      int // steps for the values that a load computes
}

// constantSteps bounds what a load spends on the values of helpers that read
// nothing of the input: about a tenth of a second for one, and a second for all.
// Topdown computes the others when it decides.
const constantSteps, allConstantSteps = DefaultSteps / 10, DefaultSteps

func newHelpers(r *ruleset, list []inputField) *helpers {
	return &helpers{rules: r, all: newPlan(list, []read{{}}), documents: map[string]*helperDocument{}, functions: map[string]*helperFunction{}, left: allConstantSteps}
}

// helperDocument is the value of rules with one name. A decision computes it
// once, when a condition reads it.
type helperDocument struct {
	value  operand
	number int // of its value in the state of a decision
	set    bool
	preset *ast.Term // of a default rule
	rules  ruleIndex
}

// documentValue is the value of a helper in one decision.
type documentValue struct {
	known bool
	term  *ast.Term // nil: undefined
}

// document compiles the longest beginning of a reference into data that names
// rules, or the data that no rule defines.
func (h *helpers) document(ref ast.Ref) (of operand, rest []*ast.Term, ok bool) {
	n := 1
	for n < len(ref) {
		if _, name := ref[n].Value.(ast.String); !name {
			break
		}
		n++
		if len(h.rules.compiler.GetRulesExact(ref[:n])) > 0 {
			d := h.documentOf(ref[:n])
			if d == nil {
				return operand{}, nil, false
			}
			return d.value, ref[n:], true
		}
	}
	if len(h.rules.compiler.GetRulesDynamicWithOpts(ref, ast.RulesOptions{IncludeHiddenModules: true})) > 0 {
		return operand{}, nil, false // a package as a document
	}
	// A part that is computed can be a text that counts as an index there, and a
	// value that is missing is none: topdown looks both up.
	t, ok := h.stored(ref[:n])
	for ; ok && n < len(ref); n++ {
		t, ok = storedElement(t, ref[n])
	}
	if !ok {
		return operand{}, nil, false
	}
	return fixedOperand(t), nil, true
}

// storedElement returns an element of a list of the data, or of an object in such a
// list, that a constant names.
func storedElement(of, at *ast.Term) (*ast.Term, bool) {
	switch v := of.Value.(type) {
	case *ast.Array:
		n, number := at.Value.(ast.Number)
		if i, whole := n.Int(); number && whole && i >= 0 && i < v.Len() && n.String() == strconv.Itoa(i) {
			return v.Elem(i), true
		}
	case ast.Object:
		if _, name := at.Value.(ast.String); name {
			found := v.Get(at)
			return found, found != nil
		}
	}
	return nil, false
}

// stored returns data that no rule defines.
func (h *helpers) stored(ref ast.Ref) (*ast.Term, bool) {
	path, err := storage.NewPathForRef(ref)
	if err != nil {
		return nil, false
	}
	found, err := h.rules.store.Read(context.Background(), h.rules.txn, path)
	if err != nil {
		return nil, false
	}
	v, ok := found.(ast.Value)
	return ast.NewTerm(v), ok
}

// documentOf compiles rules with one name, or returns nil if only topdown can
// evaluate them.
func (h *helpers) documentOf(ref ast.Ref) *helperDocument {
	name := ref.String()
	d, known := h.documents[name]
	if known {
		return d
	}
	h.documents[name] = nil
	rules := h.rules.compiler.GetRulesExact(ref)
	//mutant:check
	if !h.whole(ref, rules) {
		return nil
	}
	if t := h.constant(ref, rules); t != nil {
		d = &helperDocument{value: fixedOperand(t)}
		h.documents[name] = d
		return d
	}
	d = &helperDocument{number: len(h.documents), set: rules[0].Head.Key != nil, rules: ruleIndex{all: h.all}}
	for _, rule := range rules {
		if (rule.Head.Key != nil) != d.set || len(rule.Head.Args) > 0 {
			return nil
		}
		if rule.Default {
			if d.preset = rule.Head.Value; !ast.IsConstant(d.preset.Value) {
				return nil
			}
			continue
		}
		head := rule.Head.Value
		if d.set {
			head = rule.Head.Key
		}
		made, ok := h.newBody(rule).rule(nil, rule.Body, head, operand.adds)
		if !ok {
			return nil
		}
		d.rules.add(rule, made)
	}
	d.value = operand{term: d.term}
	h.documents[name] = d
	return d
}

// whole reports whether the rules are all that defines a document: none adds to
// it below its name.
func (h *helpers) whole(ref ast.Ref, rules []*ast.Rule) bool {
	all := h.rules.compiler.GetRulesDynamicWithOpts(ref, ast.RulesOptions{IncludeHiddenModules: true})
	return len(all) == len(rules) && !slices.ContainsFunc(rules, func(r *ast.Rule) bool { return !plainRule(r) })
}

// plainRule reports whether a rule has the form of a set or of one value.
func plainRule(rule *ast.Rule) bool {
	return rule.Else == nil && len(rule.Head.Reference) == 1 && (rule.Head.Key == nil || rule.Head.Value == nil)
}

// constant returns the value of rules that read nothing of the input, or nil.
func (h *helpers) constant(ref ast.Ref, rules []*ast.Rule) *ast.Term {
	//mutant:check
	if len(readsOf(h.rules.compiler, rules)) > 0 {
		return nil
	}
	for _, rule := range rules {
		if len(rule.Head.Args) > 0 {
			return nil
		}
	}
	const name = "value"
	taken := &steps{most: min(constantSteps, h.left)}
	body, err := h.rules.compiler.QueryCompiler().Compile(ast.NewBody(ast.Equality.Expr(ast.VarTerm(name), ast.NewTerm(ref))))
	if err != nil {
		return nil
	}
	results, err := h.rules.topdown(context.Background(), body, ast.ObjectTerm(), taken, nil)
	h.left -= min(taken.taken, h.left)
	if err != nil || len(results) != 1 {
		return nil
	}
	return results[0][ast.Var(name)]
}

// term returns the value in a decision, or nil if it is undefined.
func (d *helperDocument) term(s *decisionState) *ast.Term {
	for len(s.helpers) <= d.number {
		s.helpers = append(s.helpers, documentValue{})
	}
	if v := s.helpers[d.number]; v.known {
		return v.term
	}
	mark := s.query(d.rules.run)
	var value *ast.Term
	if found := s.drop(mark); d.set {
		value = s.setOf(found)
	} else {
		value = s.only(found, d.preset)
	}
	s.helpers[d.number] = documentValue{known: true, term: value}
	return value
}

// helperFunction is a function that rules define.
type helperFunction struct {
	args  int
	size  int
	rules []compiledRule
}

// function compiles the rules of a function, or returns nil if only topdown can
// evaluate them.
func (h *helpers) function(ref ast.Ref) *helperFunction {
	name := ref.String()
	f, known := h.functions[name]
	if known {
		return f
	}
	h.functions[name] = nil
	rules := h.rules.compiler.GetRulesExact(ref)
	if len(rules) == 0 || !h.whole(ref, rules) {
		return nil
	}
	f = &helperFunction{args: len(rules[0].Head.Args)}
	for _, rule := range rules {
		if rule.Default || rule.Head.Key != nil || len(rule.Head.Args) != f.args {
			return nil
		}
		c := h.newBody(rule)
		c.size = f.args
		params, ok := c.parameters(rule.Head.Args)
		if !ok {
			return nil
		}
		made, ok := c.rule(params, rule.Body, rule.Head.Value, operand.adds)
		if !ok {
			return nil
		}
		f.rules = append(f.rules, made)
		f.size = max(f.size, made.size)
	}
	h.functions[name] = f
	return f
}

// parameters gives the parameters of a function the first places of its frame.
func (c *bodyCompiler) parameters(args ast.Args) (links []link, ok bool) {
	for i, arg := range args {
		given := slotOperand(i)
		if v, free := c.free(arg); free {
			c.bind(v, given)
			continue
		}
		want, more, ok := c.value(arg)
		if !ok || len(more) > 0 {
			return nil, false
		}
		links = append(links, when(termCondition("eq", given, want)))
	}
	return links, true
}

// term returns the result of a function, or nil if it is undefined.
func (f *helperFunction) term(s *decisionState, args []operand) *ast.Term {
	if !s.charge(0) {
		return nil
	}
	mark, base, top := len(s.found), s.base, s.top
	s.top = top + f.size // an argument can be computed in a frame of its own
	s.grow(s.top)
	there := true
	for i, arg := range args {
		t := arg.term(s)
		s.slots[top+i], there = t, there && t != nil
	}
	if s.base = top; there {
		for _, r := range f.rules {
			r.run(s)
		}
	}
	s.base, s.top = base, top
	return s.only(s.drop(mark), nil)
}

// userFunction reports whether a name is that of a function of the policy.
func userFunction(name string) bool {
	return strings.HasPrefix(name, ast.DefaultRootDocument.Value.String()+".")
}
