package rulecond

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// call returns the alternatives in which a call of a function holds.
func (f *Finder) call(e *ast.Expr, in *frame, depth int) [][]Condition {
	ops, name := e.Operands(), e.Operator().String()
	switch {
	case (name == "eq" || name == "equal" || name == "neq") && len(ops) == 2:
		return f.equal(name, ops, in, depth)
	case (name == "lt" || name == "lte" || name == "gt" || name == "gte") && len(ops) == 2:
		return f.compare(name, ops[0], in, ops[1], in, depth)
	case name == "internal.member_2":
		return f.member(ops[0], ops[1], in, depth)
	case name == "internal.member_3":
		return f.member(ops[1], ops[2], in, depth)
	case (name == "startswith" || name == "endswith" || name == "contains") && len(ops) == 2:
		return f.text(name, ops[0], ops[1], in, depth)
	case name == "strings.any_prefix_match" && len(ops) == 2:
		return f.text("startswith", ops[0], ops[1], in, depth)
	case name == "strings.any_suffix_match" && len(ops) == 2:
		return f.text("endswith", ops[0], ops[1], in, depth)
	case name == "glob.match" && len(ops) == 3:
		return f.text("glob", ops[2], ops[0], in, depth)
	case name == "regex.match" && len(ops) == 2:
		return f.text("regex", ops[1], ops[0], in, depth)
	case e.Operator()[0].Equal(ast.DefaultRootDocument):
		return f.function(e.Operator(), ops, in, depth, nil)
	default:
		return nil
	}
}

// equal returns the conditions of a comparison. A side that a helper gives is
// followed into the helper.
func (f *Finder) equal(name string, ops []*ast.Term, in *frame, depth int) [][]Condition {
	all := both(f.keys(ops[0], in, depth), f.keys(ops[1], in, depth))
	for i, op := range ops {
		other := f.value(ops[1-i], in, depth)
		if name == "neq" || other.path != nil {
			other.values = nil
		}
		all = both(all, f.rulesHold(op, in, depth, other.values))
		if e := in.definition(op); e != nil && name != "neq" && len(other.values) > 0 {
			all = both(all, f.defined(e, in, depth, other.values))
		}
	}
	if name != "neq" {
		name = "eq"
	}
	return both(all, f.compare(name, ops[0], in, ops[1], in, depth))
}

// defined follows a variable whose value a helper gives.
func (f *Finder) defined(e *ast.Expr, in *frame, depth int, want []any) [][]Condition {
	ops := e.Operands()
	if e.IsCall() && e.Operator()[0].Equal(ast.DefaultRootDocument) {
		return f.function(e.Operator(), ops, in, depth-1, want)
	}
	var all [][]Condition
	for _, op := range ops {
		all = both(all, f.rulesHold(op, in, depth-1, want))
	}
	return all
}

// function returns the alternatives of a user-defined function.
func (f *Finder) function(name ast.Ref, ops []*ast.Term, in *frame, depth int, want []any) (all [][]Condition) {
	if depth <= 1 {
		return nil
	}
	for _, rule := range f.rules(name) {
		args := rule.Head.Args
		if len(args) == 0 || len(args) > len(ops) || rule.Default {
			continue
		}
		its := f.called(rule, ops, in)
		if want != nil && rule.Head.Value != nil {
			if got := f.value(rule.Head.Value, its, depth-1); got.path == nil && len(got.values) > 0 && !overlap(got.values, want) {
				continue
			}
		}
		some := [][]Condition{nil}
		for i, arg := range args {
			if _, variable := arg.Value.(ast.Var); !variable {
				some = both(some, f.compare("eq", arg, its, ops[i], in, depth-1))
			}
		}
		all = append(all, both(some, f.body(rule.Body, its, depth-1))...)
	}
	return all[:min(len(all), maxAlternatives)]
}

// called returns the frame of a function with its operands.
func (f *Finder) called(rule *ast.Rule, ops []*ast.Term, in *frame) *frame {
	its := f.frame(rule)
	for i, arg := range rule.Head.Args {
		if v, ok := arg.Value.(ast.Var); ok {
			its.args[v] = operand{ops[i], in}
		}
	}
	return its
}

// compare returns the condition that compares two terms.
func (f *Finder) compare(op string, a *ast.Term, inA *frame, b *ast.Term, inB *frame, depth int) [][]Condition {
	x, y := f.value(a, inA, depth), f.value(b, inB, depth)
	switch {
	case x.path != nil && y.path == nil && len(y.values) > 0:
		return [][]Condition{{x.condition(op, y.values)}}
	case y.path != nil && x.path == nil && len(x.values) > 0:
		return [][]Condition{{y.condition(turned(op), x.values)}}
	case x.path != nil && y.path != nil && op == "eq" && !samePath(x.path, y.path) && !x.count && !y.count:
		return [][]Condition{{{Path: x.path, Op: "same", Other: y.path}}}
	default:
		return nil
	}
}

func turned(op string) string {
	switch op {
	case "lt":
		return "gt"
	case "lte":
		return "gte"
	case "gt":
		return "lt"
	case "gte":
		return "lte"
	default:
		return op
	}
}

func samePath(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// member returns the condition of "element in list".
func (f *Finder) member(element, list *ast.Term, in *frame, depth int) [][]Condition {
	all := both(f.rulesHold(list, in, depth, nil), f.keys(list, in, depth))
	x, y := f.value(element, in, depth), f.value(list, in, depth)
	switch {
	case x.path != nil && y.path == nil && len(y.values) > 0:
		return both(all, [][]Condition{{x.condition("eq", y.values)}})
	case x.path == nil && y.path != nil && len(x.values) > 0:
		return both(all, [][]Condition{{{Path: step(y.path, "[]"), Op: "eq", Values: x.values}}})
	case x.path != nil && y.path != nil:
		return both(all, [][]Condition{{{Path: step(y.path, "[]"), Op: "same", Other: x.path}}})
	default:
		return all
	}
}

// text returns the condition that a function of a text holds.
func (f *Finder) text(op string, text, with *ast.Term, in *frame, depth int) [][]Condition {
	x, y := f.value(text, in, depth), f.value(with, in, depth)
	if x.path == nil || y.path != nil || len(y.values) == 0 {
		return nil
	}
	return [][]Condition{{{Path: x.path, Op: op, Values: y.values}}}
}
