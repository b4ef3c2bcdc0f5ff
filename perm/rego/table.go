package rego

import (
	"context"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
)

// maxRows bounds the total number of rules that are created from tables.
const maxRows = 10_000

// table is data that a rule iterates over, row by row.
type table struct {
	path    ast.Ref // such as data.a.b
	key     ast.Var // variable for each key; "": the rule searches for a value among the rows
	value   ast.Var // variable for each row; "": none
	entered bool    // the rule reads a member of the row
	in      int     // index of the condition "x in rows", if key is ""
	rows    []row   // in the order of the data
}

type row struct{ key, value *ast.Term }

// tableOf finds the first table that a rule iterates over. A lookup with a
// known key costs the same for any size.
func (r *ruleset) tableOf(rule *ast.Rule) (table, bool) {
	bound := map[ast.Var]bool{}
	for i, e := range rule.Body {
		if e.Negated || len(e.With) > 0 {
			continue
		}
		if _, plain := e.Terms.([]*ast.Term); !plain {
			if _, plain := e.Terms.(*ast.Term); !plain {
				continue // some, every
			}
		}
		if t, ok := r.membership(rule.Body, i); ok {
			return t, true
		}
		if t, ok := r.iteration(e, bound); ok {
			t.entered = t.value != "" && entered(rule, t.value)
			return t, true
		}
		ast.WalkVars(e, func(v ast.Var) bool { bound[v] = true; return false })
	}
	return table{}, false
}

// iteration finds data.a.b[key] in a condition, outside of comprehensions.
func (r *ruleset) iteration(e *ast.Expr, bound map[ast.Var]bool) (t table, found bool) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
			return true
		case ast.Ref:
			if found {
				return true
			}
			path, key, ok := iterated(x)
			if !ok || bound[key] {
				return false
			}
			if rows := r.rows(path); len(rows) > 0 {
				t, found = table{path: path, key: key, rows: rows}, true
				if len(x) == len(path)+1 {
					t.value = named(e, x)
				}
			}
		}
		return found
	}).Walk(e)
	return t, found
}

// entered reports whether a rule reads members of the value of a variable.
func entered(rule *ast.Rule, v ast.Var) (found bool) {
	ast.WalkRefs(rule, func(ref ast.Ref) bool {
		found = found || ref[0].Value.Compare(v) == 0
		return found
	})
	return found
}

// iterated splits a reference at its first variable.
func iterated(ref ast.Ref) (path ast.Ref, key ast.Var, ok bool) {
	if !ref[0].Equal(ast.DefaultRootDocument) {
		return nil, "", false
	}
	for i, part := range ref[1:] {
		if v, isVar := part.Value.(ast.Var); isVar {
			return ref[:i+1], v, i > 0
		}
		if _, text := part.Value.(ast.String); !text {
			return nil, "", false
		}
	}
	return nil, "", false
}

// named returns the variable that a condition makes equal to a reference.
func named(e *ast.Expr, ref ast.Ref) ast.Var {
	if callName(e) != "eq" {
		return ""
	}
	for i, op := range e.Operands() {
		if op.Value.Compare(ref) == 0 {
			if v, ok := e.Operand(1 - i).Value.(ast.Var); ok {
				return v
			}
		}
	}
	return ""
}

// membership finds "x in data.a.b", which the compiler turns into two
// conditions.
func (r *ruleset) membership(body ast.Body, i int) (table, bool) {
	if callName(body[i]) != "internal.member_2" {
		return table{}, false
	}
	rows, ok := body[i].Operand(1).Value.(ast.Var)
	if !ok {
		return table{}, false
	}
	for _, e := range body[:i] {
		if callName(e) != "eq" || e.Negated || len(e.With) > 0 || !e.Operand(0).Equal(ast.NewTerm(rows)) {
			continue
		}
		path, ok := e.Operand(1).Value.(ast.Ref)
		if !ok || !path[0].Equal(ast.DefaultRootDocument) || !path.IsGround() || len(path) < 2 {
			return table{}, false
		}
		all := r.rows(path)
		for _, one := range all {
			if _, text := one.value.Value.(ast.String); !text {
				return table{}, false
			}
		}
		return table{path: path, in: i, rows: all}, len(all) > 0
	}
	return table{}, false
}

// rows reads a table that no rule adds to. It returns nil if there is none.
func (r *ruleset) rows(path ast.Ref) []row {
	under := append(slices.Clone(path), ast.VarTerm("__any"))
	if len(r.compiler.GetRulesDynamicWithOpts(under, ast.RulesOptions{IncludeHiddenModules: true})) > 0 || len(r.compiler.GetRules(path)) > 0 {
		return nil
	}
	at := make(storage.Path, 0, len(path)-1)
	for _, part := range path[1:] {
		name, ok := part.Value.(ast.String)
		if !ok {
			return nil
		}
		at = append(at, string(name))
	}
	found, err := r.store.Read(context.Background(), r.txn, at)
	if err != nil {
		return nil
	}
	var rows []row
	switch v := found.(type) {
	case ast.Object:
		for _, key := range v.Keys() {
			rows = append(rows, row{key, v.Get(key)})
		}
	case *ast.Array:
		for i := range v.Len() {
			rows = append(rows, row{ast.IntNumberTerm(i), v.Elem(i)})
		}
	}
	return rows
}

// instance returns the rule for one row of a table.
func (t table) instance(rule *ast.Rule, of row) (*ast.Rule, error) {
	c := rule.Copy()
	c.Module = rule.Module
	if t.key == "" {
		e := c.Body[t.in]
		c.Body[t.in] = ast.Equality.Expr(e.Operand(0), of.value).SetLocation(e.Location)
		return c, nil
	}
	_, err := ast.Transform(ast.NewGenericTransformer(func(x any) (any, error) {
		switch x := x.(type) {
		case ast.Ref:
			return t.inRef(x, of), nil
		case ast.Var:
			if x == t.key {
				return of.key.Value, nil
			}
			if t.value != "" && x == t.value && !t.entered && constant(of.value.Value) {
				return of.value.Value, nil
			}
		}
		return x, nil
	}), c)
	return c, err
}

// inRef inserts a row into a reference: its value if that is text, or its key.
func (t table) inRef(ref ast.Ref, of row) ast.Value {
	if ref[0].Value.Compare(t.value) == 0 && t.value != "" {
		return inside(of.value, ref, 1)
	}
	if len(ref) > len(t.path) && ref[:len(t.path)].Equal(t.path) && ref[len(t.path)].Value.Compare(t.key) == 0 {
		if v := inside(of.value, ref, len(t.path)+1); constant(v) {
			return v
		}
	}
	return ref
}

func inside(value *ast.Term, ref ast.Ref, from int) ast.Value {
	if !ref[from:].IsGround() {
		return ref
	}
	found, err := value.Value.Find(ref[from:])
	if err != nil || !constant(found) {
		return ref
	}
	return found
}

// constant reports whether a value selects a rule exactly as the rule compares.
func constant(v ast.Value) bool {
	_, text := v.(ast.String)
	return text
}
