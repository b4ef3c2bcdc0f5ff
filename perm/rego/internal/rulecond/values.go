package rulecond

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// value is what a term can be: a place of the input, its length, or constants.
type value struct {
	path   []string // not nil: a place
	count  bool     // the length of the place
	values []any
}

func (v value) condition(op string, values []any) Condition {
	if v.count {
		op = "count:" + op
	}
	return Condition{Path: v.path, Op: op, Values: values}
}

func step(path []string, name string) []string { return append(slices.Clone(path), name) }

func constants(all ...any) value { return value{values: all} }

// definition returns the expression that gives a variable its value, or nil.
func (in *frame) definition(t *ast.Term) *ast.Expr {
	if v, ok := t.Value.(ast.Var); ok {
		return in.scope[v]
	}
	return nil
}

// value resolves a term. The zero value is unknown.
func (f *Finder) value(t *ast.Term, in *frame, depth int) (v value) {
	if depth <= 0 {
		return v
	}
	switch x := t.Value.(type) {
	case ast.String:
		return constants(string(x))
	case ast.Number:
		n, _ := json.Number(x).Float64()
		return constants(n)
	case ast.Boolean:
		return constants(bool(x))
	case ast.Null:
		return constants(nil)
	case *ast.Array:
		x.Foreach(func(e *ast.Term) { v.values = append(v.values, f.value(e, in, depth-1).values...) })
	case ast.Set:
		x.Foreach(func(e *ast.Term) { v.values = append(v.values, f.value(e, in, depth-1).values...) })
	case ast.Object:
		x.Foreach(func(_, e *ast.Term) { v.values = append(v.values, f.value(e, in, depth-1).values...) })
	case ast.Var:
		return f.variable(x, in, depth-1)
	case ast.Ref:
		return f.ref(x, in, depth-1)
	}
	v.values = v.values[:min(len(v.values), maxValues)]
	return v
}

func (f *Finder) variable(v ast.Var, in *frame, depth int) value {
	if v.Equal(ast.InputRootDocument.Value) {
		return value{path: []string{}}
	}
	if arg, ok := in.args[v]; ok {
		return f.value(arg.term, arg.in, depth)
	}
	e := in.scope[v]
	if e == nil {
		return value{}
	}
	if every, ok := e.Terms.(*ast.Every); ok {
		return element(f.value(every.Domain, in, depth))
	}
	ops := e.Operands()
	switch name := e.Operator().String(); name {
	case "eq", "assign":
		if ops[0].Value.Compare(v) == 0 {
			return f.value(ops[1], in, depth)
		}
		return f.value(ops[0], in, depth)
	default:
		return f.result(e, name, ops, in, depth)
	}
}

func element(v value) value {
	if v.path != nil && !v.count {
		v.path = step(v.path, "[]")
	}
	return v
}

// result returns what a function returns. A function that only changes the
// spelling of a text counts as the text.
func (f *Finder) result(e *ast.Expr, name string, ops []*ast.Term, in *frame, depth int) value {
	switch name {
	case "count":
		v := f.value(ops[0], in, depth)
		return value{path: v.path, count: v.path != nil}
	case "lower", "upper", "trim", "trim_left", "trim_right", "trim_prefix", "trim_suffix", "trim_space", "to_number", "object.keys":
		return f.value(ops[0], in, depth)
	case "object.get":
		v := f.value(ops[0], in, depth)
		if key := f.value(ops[1], in, depth); v.path != nil && len(key.values) > 0 {
			for _, k := range key.values {
				if name, ok := k.(string); ok {
					v.path = step(v.path, name)
				}
			}
			return v
		}
		return value{}
	case "concat":
		return concat(f.value(ops[0], in, depth), f.value(ops[1], in, depth), ops[1])
	}
	if !e.Operator()[0].Equal(ast.DefaultRootDocument) || depth <= 1 {
		return value{}
	}
	var all []value
	for _, rule := range f.rules(e.Operator()) {
		if n := len(rule.Head.Args); n > 0 && n <= len(ops) && rule.Head.Value != nil {
			all = append(all, f.value(rule.Head.Value, f.called(rule, ops, in), depth-1))
		}
	}
	return merged(all)
}

// concat returns a joined text if every part is one constant.
func concat(sep, parts value, list *ast.Term) value {
	a, ok := list.Value.(*ast.Array)
	if !ok || len(sep.values) != 1 || a.Len() != len(parts.values) {
		return value{}
	}
	words := make([]string, len(parts.values))
	for i, p := range parts.values {
		words[i], _ = p.(string)
	}
	by, _ := sep.values[0].(string)
	return constants(strings.Join(words, by))
}

// merged prefers a place, and joins constants.
func merged(all []value) (out value) {
	for _, v := range all {
		if v.path != nil {
			return v
		}
		out.values = append(out.values, v.values...)
	}
	out.values = out.values[:min(len(out.values), maxValues)]
	return out
}

func (f *Finder) ref(ref ast.Ref, in *frame, depth int) value {
	if ref[0].Equal(ast.DefaultRootDocument) {
		return f.ofData(ref, in, depth)
	}
	v := f.value(ref[0], in, depth)
	if v.path == nil || v.count {
		return value{values: v.values} // an element of a constant
	}
	path := slices.Clone(v.path)
	for _, part := range ref[1:] {
		path = append(path, f.step(part, in, depth))
	}
	return value{path: path}
}

// step returns the step of a path that a part of a reference is.
func (f *Finder) step(part *ast.Term, in *frame, depth int) string {
	v := f.value(part, in, depth)
	switch {
	case v.path != nil && !v.count:
		return "{" + strings.Join(v.path, ".") + "}"
	case len(v.values) == 0:
		return "[]"
	}
	switch k := v.values[0].(type) {
	case string:
		return k
	case float64:
		return "[" + ast.Number(json.Number(number(k))).String() + "]"
	default:
		return "[]"
	}
}

func number(f float64) string {
	text, _ := json.Marshal(f) // a number that came from JSON
	return string(text)
}

// ofData returns the values of rules or data that a reference names.
func (f *Finder) ofData(ref ast.Ref, in *frame, depth int) value {
	var all []value
	for _, rule := range f.rules(ref) {
		if len(rule.Head.Args) > 0 || depth <= 1 {
			continue
		}
		its := f.frame(rule)
		if rule.Head.Key != nil {
			all = append(all, f.value(rule.Head.Key, its, depth-1))
		}
		if rule.Head.Value != nil {
			all = append(all, f.value(rule.Head.Value, its, depth-1))
		}
	}
	if len(all) > 0 {
		return merged(all)
	}
	var out value
	for _, node := range f.nodes(ref[1:], f.data, in, depth) {
		out.values = scalars(out.values, node)
	}
	return out
}

// nodes returns the data that a reference can lead to.
func (f *Finder) nodes(parts []*ast.Term, node any, in *frame, depth int) []any {
	if len(parts) == 0 {
		return []any{node}
	}
	var out []any
	if v := f.value(parts[0], in, depth); v.path == nil && len(v.values) == 1 {
		object, _ := node.(map[string]any)
		if name, ok := v.values[0].(string); ok {
			if below, has := object[name]; has {
				return f.nodes(parts[1:], below, in, depth)
			}
			return nil
		}
	}
	switch node := node.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(node)) {
			out = append(out, f.nodes(parts[1:], node[k], in, depth)...)
		}
	case []any:
		for _, below := range node {
			out = append(out, f.nodes(parts[1:], below, in, depth)...)
		}
	}
	return out
}

// scalars adds the scalars of a document to a list.
func scalars(out []any, node any) []any {
	switch node := node.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(node)) {
			out = scalars(out, node[k])
		}
	case []any:
		for _, below := range node {
			out = scalars(out, below)
		}
	case json.Number:
		n, _ := node.Float64()
		out = append(out, n)
	case int:
		out = append(out, float64(node))
	default:
		out = append(out, node)
	}
	return out[:min(len(out), maxValues)]
}

// keys returns the condition that a place of the input is a key of an object of
// the data, for a reference such as data.limits[input.tool.name].
func (f *Finder) keys(t *ast.Term, in *frame, depth int) [][]Condition {
	all := [][]Condition{nil}
	ref, ok := t.Value.(ast.Ref)
	if !ok || !ref[0].Equal(ast.DefaultRootDocument) || depth <= 1 {
		return all
	}
	for i := 1; i < len(ref); i++ {
		v := f.value(ref[i], in, depth-1)
		if v.path == nil || v.count {
			continue
		}
		var names []any
		for _, node := range f.nodes(ref[1:i], f.data, in, depth-1) {
			object, _ := node.(map[string]any)
			for _, k := range slices.Sorted(maps.Keys(object)) {
				names = append(names, k)
			}
		}
		if len(names) > 0 {
			all = both(all, [][]Condition{{{Path: v.path, Op: "eq", Values: names}}})
		}
	}
	return all
}
