package rego

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// call compiles a call: a comparison, a built-in or a function of the policy.
// The last operand can be a variable or a value that gets the result.
func (c *bodyCompiler) call(e *ast.Expr) ([]link, bool) {
	name, ops := callName(e), e.Operands()
	switch {
	case name == "eq" && len(ops) == 2:
		return c.unify(ops[0], ops[1])
	case comparison(name) != nil && len(ops) == 2:
		return c.compare(name, ops)
	case userFunction(name):
		return c.helperCall(e.Operator(), ops)
	case pureBuiltin(name):
		return c.builtin(name, ops)
	}
	return nil, false
}

func (c *bodyCompiler) helperCall(ref ast.Ref, ops []*ast.Term) ([]link, bool) {
	f := c.function(ref)
	if f == nil || len(ops) < f.args || len(ops) > f.args+1 {
		return nil, false
	}
	args, links, ok := c.values(ops[:f.args])
	if !ok {
		return nil, false
	}
	return c.result(links, ops[f.args:], func(s *decisionState) *ast.Term { return f.term(s, args) })
}

// result goes on with the result of a call: it must not be false, or it is the
// value of the operand that follows the arguments.
func (c *bodyCompiler) result(links []link, out []*ast.Term, of func(*decisionState) *ast.Term) ([]link, bool) {
	if len(out) == 0 {
		return append(links, when(func(s *decisionState) bool {
			t := of(s)
			return t != nil && !t.Equal(ast.InternedTerm(false))
		})), true
	}
	at := c.slot()
	links = append(links, assign(at, operand{term: of}))
	if v, free := c.free(out[0]); free {
		return links, c.bind(v, slotOperand(at))
	}
	want, more, ok := c.value(out[0])
	return append(append(links, more...), when(termCondition("eq", slotOperand(at), want))), ok
}

// builtin compiles a call of OPA's own function.
func (c *bodyCompiler) builtin(name string, ops []*ast.Term) ([]link, bool) {
	n := len(ast.BuiltinMap[name].Decl.FuncArgs().Args)
	if len(ops) < n || len(ops) > n+1 {
		return nil, false
	}
	args, links, ok := c.values(ops[:n])
	if !ok {
		return nil, false
	}
	call := topdown.GetBuiltin(name)
	return c.result(links, ops[n:], func(s *decisionState) (result *ast.Term) {
		given := make([]*ast.Term, len(args))
		for i, arg := range args {
			if given[i] = arg.term(s); given[i] == nil || !s.charge(arg.sizeOf(given[i])) {
				return nil
			}
		}
		err := call(topdown.BuiltinContext{}, given, func(t *ast.Term) error {
			result = t
			return nil
		})
		//mutant:check
		if err != nil || result != nil && !s.charge(sizeOf(result)) {
			s.unsure = true
			return nil
		}
		return result
	})
}

// pureBuiltin reports whether a built-in needs nothing but its operands, and
// takes time that follows from their size.
func pureBuiltin(name string) bool {
	switch name {
	case "glob.match", "lower", "upper", "trim", "trim_left", "trim_right", "trim_prefix", "trim_suffix", "trim_space",
		"concat", "sprintf", "split", "substring", "indexof", "format_int",
		"equal", "neq", "lt", "lte", "gt", "gte", "internal.member_2", "startswith", "endswith", "contains",
		"strings.any_prefix_match", "strings.any_suffix_match", "strings.count",
		"count", "sum", "max", "min", "sort", "array.slice", "array.concat", "object.get", "object.keys", "or", "and", "minus", "plus", "mul", "div", "rem", "abs",
		"is_string", "is_number", "is_boolean", "is_array", "is_object", "is_set", "is_null", "to_number",
		"time.parse_rfc3339_ns", "time.clock", "time.weekday":
		return true
	}
	return false
}
