package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// argumentValues warns of comparisons of an argument that no input of the tools
// meets: a value of another type, or a text that the schema does not list.
func (t *toolLint) argumentValues(r setRule, tools []Tool) {
	ast.WalkExprs(r.rule, func(e *ast.Expr) bool {
		name, ops := callName(e), e.Operands()
		compares := slices.Contains([]string{"eq", "equal", "neq", "lt", "lte", "gt", "gte"}, name)
		if !compares && name != "internal.member_2" || len(ops) != 2 {
			return false
		}
		t.argumentValue(ops[0], ops[1], tools, orRule(e.Location, r.rule))
		if compares {
			t.argumentValue(ops[1], ops[0], tools, orRule(e.Location, r.rule))
		}
		return false
	})
}

func (t *toolLint) argumentValue(place, with *ast.Term, tools []Tool, loc *ast.Location) {
	s := t.shapeOf(place)
	if s == nil {
		return
	}
	arg, found := strings.CutPrefix(s.path, "call.args.")
	if !found || strings.ContainsAny(arg, ".[*") {
		return
	}
	is, same := tools[0].Types[arg], true
	valid := slices.Clone(tools[0].Enums[arg])
	for _, tool := range tools[1:] {
		same = same && tool.Types[arg] == is
		if len(tool.Enums[arg]) == 0 {
			valid = nil
		}
		if len(valid) > 0 {
			valid = append(valid, tool.Enums[arg]...)
		}
	}
	kind := constantType(t.follow(with))
	if is == "" || kind == "" || !same {
		return
	}
	if want := strings.Replace(is, "integer", "number", 1); want != kind {
		t.warn(loc, "compare a number with a number, without quotes, and a text with a text", "argument %q of %s is a %s, and is compared with a %s", arg, tools[0].Name, want, kind)
		return
	}
	for _, text := range t.constants(with) {
		if len(valid) > 0 && !slices.Contains(valid, text) {
			t.warn(loc, fixName(text, valid), "argument %q of %s is never %q", arg, tools[0].Name, text)
		}
	}
}

// constantType returns the JSON type of a constant, or of all elements of a list
// or set of constants; "" for another term, and for null.
func constantType(t *ast.Term) string {
	switch t.Value.(type) {
	case ast.Number:
		return "number"
	case ast.String:
		return "string"
	case ast.Boolean:
		return "boolean"
	}
	if texts, ok := constantTexts(t); ok && len(texts) > 0 {
		return "string"
	}
	return ""
}

// sums warns of a budget of a sum that the tools do not count. The runtime
// denies their calls.
func (t *toolLint) sums(r setRule, tools []Tool) {
	object, ok := r.rule.Head.Key.Value.(ast.Object)
	if !ok || r.set != setLimit {
		return
	}
	sum, said := plainOf(object, "sum")
	for _, tool := range tools {
		if said && tool.Counters != nil && !slices.Contains(tool.Counters, sum) {
			fix := "leave sum out to count calls, or add the counter to the declaration of the tool"
			if len(tool.Counters) > 0 {
				fix = fixName(sum, tool.Counters)
			}
			t.warn(r.rule.Loc(), fix, "%s has no counter %q, so the budget denies its calls", tool.Name, sum)
			return
		}
	}
}

// pastTools passes on the tools that the patterns of a function about earlier
// calls name whole.
func (t *toolLint) pastTools(function string, ops []*ast.Term, see func(*ast.Term)) {
	for i, op := range ops {
		object, ok := t.follow(op).Value.(ast.Object)
		if !ok || i > 0 && function != "before" {
			return
		}
		if name := object.Get(ast.StringTerm("tool")); name != nil && !strings.Contains(plain(name.Value), "*") {
			see(name)
		}
	}
}
