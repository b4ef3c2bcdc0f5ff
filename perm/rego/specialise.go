package rego

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// specialised returns a ruleset with the same results that does not iterate
// over tables of the data for each request. It replaces a rule that compares a
// field of the input with each row by one rule per row. Compiled rules
// find such a rule by the value of the row. A rule stays if equivalence cannot be
// shown. If no rule changes, specialised returns r.
func (r *ruleset) specialised(m *modules, list []inputField, most int) (*ruleset, []UncheckedRef) {
	if r.replacesData() {
		return r, nil
	}
	var notes []UncheckedRef
	skip := map[string]bool{}
	for range maxTries {
		s := &specialiser{ruleset: r, left: most, most: most, skip: skip}
		out, err := s.compiled(m.names, list)
		if err == nil {
			return out, append(notes, s.notes...)
		}
		found := problems{}
		found.addOPA(err, m.fix(""))
		for _, p := range found {
			where := lineOf(p.At)
			skip[where] = true
			notes = append(notes, UncheckedRef{At: where, Text: "goes over a table for every request: its rows cannot be made rules: " + p.Text})
		}
	}
	return r, notes
}

// compiled creates the rules and compiles them. It returns r if none changed.
func (s *specialiser) compiled(names []string, list []inputField) (*ruleset, error) {
	mods := make(map[string]*ast.Module, len(names))
	for _, name := range names {
		mods[name] = s.module(s.compiler.Modules[name])
	}
	if !s.changed || s.err != nil {
		return s.ruleset, s.err
	}
	c, err := newCompiler()
	if err != nil {
		return nil, err
	}
	if c.Compile(mods); c.Failed() {
		return nil, c.Errors
	}
	out := &ruleset{compiler: c, store: s.store, txn: s.txn, places: s.places, numbers: map[*ast.Rule]int{}, queries: map[perm.Purpose]query{}, masks: s.masks}
	out.renumber(names, s.order)
	for purpose := range s.queries {
		if out.queries[purpose], err = out.prepare(purpose, list); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// replacesData reports whether any condition replaces data. If so, the rows of
// a table are not known.
func (r *ruleset) replacesData() (found bool) {
	for _, mod := range r.compiler.Modules {
		ast.WalkWiths(mod, func(w *ast.With) bool {
			ref, ok := w.Target.Value.(ast.Ref)
			found = found || ok && ref[0].Equal(ast.DefaultRootDocument)
			return found
		})
	}
	return found
}

// renumber finds the numbers of rules in the given order.
func (r *ruleset) renumber(names []string, order []int) {
	i := 0
	for _, name := range names {
		for _, rule := range r.compiler.Modules[name].Rules {
			if strings.HasPrefix(headName(rule), privatePrefix) {
				r.numbers[rule] = order[i]
				i++
			}
		}
	}
}

// maxTries bounds how often rules are created again without those that did not
// compile.
const maxTries = 4

type specialiser struct {
	*ruleset
	left    int             // remaining rows that may become rules
	most    int             // initial number of these rows
	skip    map[string]bool // positions of rules that do not compile after the expansion
	order   []int           // the number of each private rule that was created
	changed bool
	err     error
	notes   []UncheckedRef
}

func (s *specialiser) module(mod *ast.Module) *ast.Module {
	out := mod.Copy()
	out.Imports, out.Rules = nil, nil // compiled references are already complete
	for _, rule := range mod.Rules {
		made := s.rule(rule)
		if n, private := s.numbers[rule]; private {
			for range made {
				s.order = append(s.order, n)
			}
		}
		for _, one := range made {
			one.Module = out
		}
		out.Rules = append(out.Rules, made...)
	}
	return out
}

// rule returns the replacements of a rule.
func (s *specialiser) rule(rule *ast.Rule) []*ast.Rule {
	same := []*ast.Rule{rule.Copy()}
	if setOf(rule.Module, rule) != "" { // its located copy decides
		return same
	}
	t, ok := s.tableOf(rule)
	if !ok || s.skip[at(rule.Loc())] || !s.splits(rule) || !s.indexes(rule, t) {
		return same
	}
	if len(t.rows) > s.left {
		s.notes = append(s.notes, UncheckedRef{At: at(rule.Loc()), Text: fmt.Sprintf("goes over %s for every request: of all tables %d rows are made rules, and it has %d", t.path, s.most, len(t.rows))})
		return same
	}
	made := make([]*ast.Rule, 0, len(t.rows))
	for _, of := range t.rows {
		one, err := t.instance(rule, of)
		if err != nil {
			s.err = err
			return same
		}
		made = append(made, one)
	}
	s.left -= len(t.rows)
	s.changed = true
	return made
}

// splits reports whether several rules can replace one: rules of a set, and
// rules with one constant value. For the latter, and for sets that a rule may
// query for one element, the first match can end the evaluation. So none of
// their conditions may fail.
func (s *specialiser) splits(rule *ast.Rule) bool {
	if rule.Default || rule.Else != nil || len(rule.Head.Args) > 0 || len(rule.Head.Reference) != 1 {
		return false
	}
	if _, private := s.numbers[rule]; private {
		return true
	}
	if !isPartialSet(rule) && (rule.Head.Key != nil || rule.Head.Value == nil || !ast.IsConstant(rule.Head.Value.Value)) {
		return false
	}
	return !slices.ContainsFunc(rule.Body, func(e *ast.Expr) bool { return !s.total(rule.Body, e) })
}

// indexes reports whether the comparison with a row can select the rule, and
// whether nothing before it can fail: what selects a rule may skip its earlier
// conditions.
func (s *specialiser) indexes(rule *ast.Rule, t table) bool {
	last, useful := -1, false
	for i, e := range rule.Body {
		if e.Negated || len(e.With) > 0 || !indexable(callName(e)) || !slices.ContainsFunc(e.Operands(), func(op *ast.Term) bool { return inputOf(rule.Body, op) != nil }) {
			continue
		}
		last = i
		useful = useful || t.key == "" && t.in == i || t.key != "" && slices.ContainsFunc(e.Operands(), t.names)
	}
	if !useful {
		return false
	}
	for _, e := range rule.Body[:last+1] {
		if !s.total(rule.Body, e) {
			return false
		}
	}
	return true
}

func indexable(call string) bool {
	switch call {
	case "eq", "equal", "internal.member_2", "startswith", "endswith", "glob.match":
		return true
	default:
		return false
	}
}

// names reports whether an operand is a row, its key, or a member of it.
func (t table) names(op *ast.Term) bool {
	switch v := op.Value.(type) {
	case ast.Var:
		return v == t.key || t.value != "" && v == t.value
	case ast.Ref:
		return t.value != "" && v[0].Value.Compare(t.value) == 0 || v.HasPrefix(append(slices.Clone(t.path), ast.NewTerm(t.key)))
	default:
		return false
	}
}

// inputOf returns the place of the input that an operand is, or nil.
func inputOf(body ast.Body, op *ast.Term) ast.Ref {
	switch v := op.Value.(type) {
	case ast.Ref:
		if v[0].Equal(ast.InputRootDocument) && v.IsGround() {
			return v
		}
	case ast.Var:
		for _, e := range body {
			if callName(e) == "eq" && !e.Negated && len(e.With) == 0 && e.Operand(0).Equal(op) {
				if ref, ok := e.Operand(1).Value.(ast.Ref); ok && ref[0].Equal(ast.InputRootDocument) && ref.IsGround() {
					return ref
				}
			}
		}
	}
	return nil
}

// total reports whether a condition never fails: it calls no rule, and no
// function that refuses some operands.
func (s *specialiser) total(body ast.Body, e *ast.Expr) bool {
	ok := len(e.With) == 0
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.With:
			ok = false
		case ast.Call:
			ok = ok && harmless(x[0].Value.String())
		case *ast.Expr:
			ok = ok && (!x.IsCall() || harmless(callName(x)) || s.ofTexts(body, x))
		case ast.Ref:
			ok = ok && (!x[0].Equal(ast.DefaultRootDocument) || !s.ruled(x))
		}
		return !ok
	}).Walk(e)
	return ok
}

func harmless(call string) bool {
	switch call {
	case "eq", "equal", "neq", "lt", "lte", "gt", "gte", "internal.member_2", "internal.member_3",
		"is_string", "is_number", "is_boolean", "is_array", "is_object", "is_set", "is_null":
		return true
	default:
		return false
	}
}

func (s *specialiser) ruled(ref ast.Ref) bool {
	return len(s.compiler.GetRulesDynamicWithOpts(ref, ast.RulesOptions{IncludeHiddenModules: true})) > 0
}

// ofTexts reports whether a condition compares the start, the end or the form
// of a text of the input with constant texts. The schema states that the input
// is text. A row counts as text only if every row is text.
func (s *specialiser) ofTexts(body ast.Body, e *ast.Expr) bool {
	switch callName(e) {
	case "startswith", "endswith", "glob.match":
	default:
		return false
	}
	for _, op := range e.Operands() {
		if ref := inputOf(body, op); ref != nil {
			if !isText(ref) {
				return false
			}
			continue
		}
		switch v := op.Value.(type) {
		case ast.String, ast.Null:
		case *ast.Array:
			if !v.IsGround() {
				return false
			}
		default:
			if !s.rowOfTexts(body, op) {
				return false
			}
		}
	}
	return true
}

// rowOfTexts reports whether an operand is a row of a table with only texts
// that glob.match accepts as patterns.
func (s *specialiser) rowOfTexts(body ast.Body, op *ast.Term) bool {
	v, ok := op.Value.(ast.Var)
	if !ok {
		return false
	}
	for _, e := range body {
		if callName(e) != "eq" || e.Negated || len(e.With) > 0 || !e.Operand(0).Equal(ast.NewTerm(v)) {
			continue
		}
		ref, ok := e.Operand(1).Value.(ast.Ref)
		if !ok {
			return false
		}
		path, _, ok := iterated(ref)
		if !ok || len(ref) != len(path)+1 {
			return false
		}
		rows := s.rows(path)
		return len(rows) > 0 && !slices.ContainsFunc(rows, func(r row) bool {
			text, isText := r.value.Value.(ast.String)
			return !isText || strings.ContainsAny(string(text), "[]{}\\!")
		})
	}
	return false
}

// isText reports whether the input document has a text at a place, or nothing.
func isText(ref ast.Ref) bool {
	switch ref.String() {
	case "input.principal.id", "input.tool.name", "input.tool.version", "input.tool.provenance", "input.call.effect_class",
		"input.access.action", "input.access.method", "input.session.id", "input.access.resource.text", "input.access.resource.root",
		"input.access.resource.path", "input.access.resource.name", "input.access.resource.ext", "input.access.resource.host",
		"input.access.resource.table", "input.access.resource.database", "input.access.resource.program", "input.access.resource.tool",
		"input.access.resource.server", "input.access.resource.kind":
		return true
	default:
		return false
	}
}
