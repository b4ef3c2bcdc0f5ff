package rego

import "github.com/open-policy-agent/opa/v1/ast"

// maxKnown bounds how many names the analysis follows to a constant.
const maxKnown = 4

// knownLimit returns the element of limit that a rule adds, as far as the
// policy alone determines it. A part that depends on the request becomes a
// valid value. It returns nil if the rule adds no object, or an object that its
// text does not determine.
func knownLimit(rule *ast.Rule) ast.Object {
	object, ok := known(rule, rule.Head.Key, maxKnown).Value.(ast.Object)
	if !ok {
		return nil
	}
	out, open := ast.NewObject(), false
	object.Foreach(func(key, value *ast.Term) {
		key, value = known(rule, key, maxKnown), known(rule, value, maxKnown)
		open = open || !ast.IsConstant(key.Value)
		if valid := validPart(key); valid != nil && !ast.IsConstant(value.Value) {
			value = valid
		}
		if ast.IsConstant(key.Value) {
			out.Insert(key, value)
		}
	})
	for _, name := range []string{"budget", "max"} { // a computed name can be one of these
		if key := ast.StringTerm(name); open && out.Get(key) == nil {
			out.Insert(key, validPart(key))
		}
	}
	return out
}

// validPart returns a valid value for a field of a limit, or nil if there is no
// such field.
func validPart(field *ast.Term) *ast.Term {
	name, _ := field.Value.(ast.String)
	switch string(name) {
	case "budget", "sum":
		return ast.StringTerm("x")
	case "per":
		return ast.StringTerm("session")
	case "window":
		return ast.StringTerm("1h")
	case "max":
		return ast.IntNumberTerm(1)
	case "tools":
		return ast.ArrayTerm()
	}
	return nil
}

// known resolves a name to its value in the rule or its module.
func known(rule *ast.Rule, term *ast.Term, depth int) *ast.Term {
	name, ok := term.Value.(ast.Var)
	if !ok || depth == 0 {
		return term
	}
	for _, e := range rule.Body {
		if some, ok := e.Terms.(*ast.SomeDecl); ok && declares(some, name) {
			return term
		}
		if e.Negated || len(e.With) > 0 || !e.IsAssignment() && !e.IsEquality() {
			continue
		}
		left, right := e.Operand(0), e.Operand(1)
		switch {
		case name.Equal(left.Value):
			return known(rule, right, depth-1)
		case name.Equal(right.Value):
			return known(rule, left, depth-1)
		}
	}
	return constantOf(rule.Module, name, term)
}

// declares reports whether a name is local to the rule.
func declares(some *ast.SomeDecl, name ast.Var) bool {
	found := false
	for _, t := range some.Symbols {
		ast.WalkVars(t, func(v ast.Var) bool { found = found || v == name; return false })
	}
	return found
}

// constantOf returns the value if exactly one rule of a module defines a name
// as a constant, or else term.
func constantOf(m *ast.Module, name ast.Var, term *ast.Term) *ast.Term {
	var found *ast.Term
	always := ast.NewBody(ast.NewExpr(ast.BooleanTerm(true)))
	for _, r := range m.Rules {
		switch {
		case r.Head.Name != name:
		case found != nil, r.Default, r.Else != nil, r.Head.Key != nil, len(r.Head.Args) > 0, !r.Body.Equal(always), !ast.IsConstant(r.Head.Value.Value):
			return term
		default:
			found = r.Head.Value
		}
	}
	if found == nil {
		return term
	}
	return found
}
