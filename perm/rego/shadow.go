package rego

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// stronger lists for each set the sets whose reasons decide in its place. A
// set of reasons is in its own list: one reason is enough. For the other sets
// an element counts only once, so an equal one takes its place.
var stronger = map[string][]string{
	setDeny: {setDeny}, setAsk: {setDeny, setAsk}, setHold: {setDeny, setHold}, setAllow: {setDeny, setAsk, setHold, setAllow},
	setDenyCommit: {setDenyCommit}, setAskCommit: {setDenyCommit, setAskCommit}, setHide: {setHide}, setEnsure: {setEnsure},
	setRequire: {setRequire}, setRedact: {setRedact}, setMask: {setMask}, setLabel: {setLabel},
}

// shadowed warns of a rule that changes no decision, since another rule holds
// in each case. It compares the conditions as texts: what it does not
// understand it leaves out.
func (l *lint) shadowed(r setRule) {
	if r.facts.never != nil || l.used.has(r.rule.Module, r.set) { // another rule could look for its reason
		return
	}
	for _, d := range l.rules {
		if !slices.Contains(stronger[r.set], d.set) || d.rule == r.rule || !takesPlace(d, r) || !implied(d.rule, r.rule) {
			continue
		}
		if d.set == r.set && takesPlace(r, d) && implied(r.rule, d.rule) && comparePlaces(at(r.rule.Loc()), at(d.rule.Loc())) <= 0 {
			continue // the same rule twice: the later one is too much
		}
		l.warn(r.rule.Loc(), "remove one of the two rules, or change their conditions", "this rule of %s changes no decision: wherever it holds, the rule of %s at %s holds too", r.set, d.set, at(d.rule.Loc()))
		return
	}
}

// takesPlace reports whether an element of d makes one of r redundant.
func takesPlace(d, r setRule) bool {
	of, ok := d.rule.Head.Key.Value.(ast.String)
	switch {
	case !ok || !plainBody(d.rule):
		return false
	case d.set == setDeny && len(conditionsOf(d.rule)) == 0:
		return false // it has a warning of its own
	case d.set == setAsk && r.set == setAsk: // an object says what an approval covers
		_, text := r.rule.Head.Key.Value.(ast.String)
		return text
	case slices.Contains([]string{setRequire, setRedact, setMask, setLabel}, d.set):
		return of.Equal(r.rule.Head.Key.Value)
	default:
		return true
	}
}

// plainBody reports whether a rule is undefined or holds, by its conditions only.
func plainBody(rule *ast.Rule) bool { return !rule.Default && rule.Else == nil }

// conditionsOf returns the conditions of a rule without those that always hold.
func conditionsOf(rule *ast.Rule) []*ast.Expr {
	return slices.DeleteFunc(slices.Clone([]*ast.Expr(rule.Body)), func(e *ast.Expr) bool {
		t, single := e.Terms.(*ast.Term)
		return single && !e.Negated && len(e.With) == 0 && t.Value.Compare(ast.Boolean(true)) == 0
	})
}

// implied reports whether d holds wherever r does: each condition of d is one
// of r, with variables of r for those of d.
func implied(d, r *ast.Rule) bool {
	names, of := map[ast.Var]ast.Var{}, conditionsOf(r)
	for _, condition := range conditionsOf(d) {
		if !slices.ContainsFunc(of, func(e *ast.Expr) bool { return sameCondition(condition, e, names) }) {
			return false
		}
	}
	return true
}

// sameCondition compares two conditions, and adds the variables that differ to
// names if the conditions are equal otherwise. A condition that binds variables
// inside, or is negated and has variables, can mean another thing beside other
// conditions, so it is equal to none.
func sameCondition(d, r *ast.Expr, names map[ast.Var]ast.Var) bool {
	if len(d.With) > 0 || len(r.With) > 0 || d.Negated != r.Negated || closes(d) || closes(r) {
		return false
	}
	d, r = d.Copy(), r.Copy()
	d.Index, r.Index = 0, 0
	ours, theirs := localsOf(d), localsOf(r)
	if len(ours) != len(theirs) || d.Negated && len(ours) > 0 {
		return false
	}
	more := map[ast.Var]ast.Var{}
	for i, v := range ours {
		to, known := names[v]
		if known && to != theirs[i] {
			return false
		}
		if earlier, twice := more[v]; twice && earlier != theirs[i] {
			return false
		}
		more[v] = theirs[i]
	}
	renamed, err := ast.TransformVars(d, func(v ast.Var) (ast.Value, error) {
		if to, local := more[v]; local {
			return to, nil
		}
		return v, nil
	})
	if same, ok := renamed.(*ast.Expr); err != nil || !ok || same.Compare(r) != 0 {
		return false
	}
	for v, to := range more {
		names[v] = to
	}
	return true
}

// closes reports whether a condition has a body of its own.
func closes(e *ast.Expr) (found bool) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x.(type) {
		case *ast.Every, *ast.SomeDecl, *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
			found = true
		}
		return found
	}).Walk(e)
	return found
}

// localsOf returns the variables of a condition, in the order of the text, each
// time that it has them.
func localsOf(e *ast.Expr) (all []ast.Var) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case ast.Var:
			if !x.Equal(ast.InputRootDocument.Value) && !x.Equal(ast.DefaultRootDocument.Value) {
				all = append(all, x)
			}
		case *ast.Expr:
			if call, is := x.Terms.([]*ast.Term); is { // the operator is a name
				for _, t := range call[1:] {
					all = append(all, localsOf(&ast.Expr{Terms: t})...)
				}
				return true
			}
		}
		return false
	}).Walk(e)
	return all
}
