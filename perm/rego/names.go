package rego

import (
	"cmp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// nameCheck finds references to data that no rule and no data file defines. OPA
// treats them as data that may arrive later. So a rule that needs one never
// fires, without a message.
type nameCheck struct {
	compiler *ast.Compiler
	scope    *scope // scope of the current module
	data     map[string]any
	input    *shape
	mocked   []ast.Ref // data that the current condition replaces
	imports  []ast.Ref // imports of the current module that resolve to nothing
	near     *ast.Location
	tests    bool // a set without a rule is empty, which a test may state
	found    problems
}

// checkNames checks the modules that decide.
func (m *modules) checkNames(c *ast.Compiler, data map[string]any) error {
	input, err := inputShape()
	if err != nil {
		return err
	}
	n := &nameCheck{compiler: c, data: data, input: input}
	for _, name := range m.names {
		n.module(m.parsed[name], c.Modules[name])
	}
	return n.found.err()
}

// checkTestNames checks the tests, in modules compiled with what they test. A
// test of a name that does not exist holds if it begins with not.
func (m *modules) checkTestNames(c *ast.Compiler, data map[string]any) error {
	input, err := inputShape()
	if err != nil {
		return err
	}
	n := &nameCheck{compiler: c, data: data, input: input, tests: true}
	for _, name := range sortedKeys(m.tests) {
		n.module(m.tests[name], c.Modules[name])
	}
	return n.found.err()
}

// module checks the imports as written, and the rules as compiled. In compiled
// rules, a name of an import is a reference into data.
func (n *nameCheck) module(written, compiled *ast.Module) {
	n.imports, n.scope = nil, newScope(n.compiler, compiled, n.input)
	for _, i := range written.Imports {
		ref, ok := i.Path.Value.(ast.Ref)
		if ok && !n.resolve(ref, i.Path.Location) {
			n.imports = append(n.imports, ref)
		}
	}
	for _, rule := range compiled.Rules {
		n.near = rule.Loc()
		n.visit(rule)
	}
}

func (n *nameCheck) visit(x any) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Head:
			for _, part := range x.Reference[1:] { // the visitor omits it
				n.visit(part)
			}
		case *ast.Expr:
			n.near = orElse(x.Location, n.near)
			return n.expr(x)
		case *ast.Term:
			if ref, ok := x.Value.(ast.Ref); ok {
				n.reference(ref, orElse(x.Location, n.near))
			}
		}
		return false
	}).Walk(x)
}

// expr checks a condition that replaces data. In this condition, the replaced
// names exist. It reports whether it checked the whole condition.
func (n *nameCheck) expr(e *ast.Expr) bool {
	n.member(e, n.near)
	if len(e.With) == 0 {
		return false
	}
	before := len(n.mocked)
	for _, w := range e.With {
		n.visit(w.Value)
		n.fields(w)
		if ref, ok := w.Target.Value.(ast.Ref); ok {
			n.mocked = append(n.mocked, ref)
		}
	}
	bare := *e
	bare.With = nil
	n.visit(&bare)
	n.mocked = n.mocked[:before]
	return true
}

// reference checks one reference, unless an earlier line explains why it does
// not resolve.
func (n *nameCheck) reference(ref ast.Ref, loc *ast.Location) {
	constant := ref.ConstantPrefix()
	given := func(target ast.Ref) bool { return ref.HasPrefix(target) || target.HasPrefix(constant) }
	if !slices.ContainsFunc(n.imports, ref.HasPrefix) && !slices.ContainsFunc(n.mocked, given) {
		n.resolve(ref, loc)
	}
}

// resolve follows a reference through rules and data, and reports whether each
// of its constant parts exists.
func (n *nameCheck) resolve(ref ast.Ref, loc *ast.Location) bool {
	if !ref[0].Equal(ast.DefaultRootDocument) {
		return true
	}
	at := namespace{n.compiler.RuleTree.Child(ref[0].Value), n.data}
	for i, part := range ref[1:] {
		if !ast.IsScalar(part.Value) || at.isRule() {
			n.lookup(at, ref, i+1, loc)
			return true
		}
		below, exists := at.child(part.Value)
		if !exists {
			if n.tests && isSetRef(ref) {
				return true
			}
			n.report(ref[:i+2], at.names(), loc)
			return false
		}
		at = below
	}
	return true
}

func (n *nameCheck) report(missing ast.Ref, known []string, loc *ast.Location) {
	fix := "write the rule, or put the value into a file called data.json in a folder of the policy"
	if elsewhere := find(n.data, plain(missing[len(missing)-1].Value), "data"); elsewhere != "" {
		n.found.add(spot(loc), "write "+elsewhere+": data.json in a folder is data below the name of that folder", "no rule and no data file defines %s", missing)
		return
	}
	if len(known) > 0 {
		near := fixName(plain(missing[len(missing)-1].Value), known)
		if strings.HasSuffix(near, "?") {
			fix = near
		} else {
			fix = near + "; or " + fix
		}
	}
	n.found.add(spot(loc), fix, "no rule and no data file defines %s", missing)
}

// find returns the path of a name in the data, or "" if it is missing or
// ambiguous.
func find(data map[string]any, name, path string) (found string) {
	for _, key := range sortedKeys(data) {
		below, isObject := data[key].(map[string]any)
		at := ""
		if key == name {
			at = path + "." + key
		} else if isObject {
			at = find(below, name, path+"."+key)
		}
		if at != "" && found != "" {
			return ""
		}
		found = cmp.Or(at, found)
	}
	return found
}

// fields refuses a test that sets a field to a value that no input has.
func (n *nameCheck) fields(w *ast.With) {
	ref, ok := w.Target.Value.(ast.Ref)
	if !n.tests || !ok && !w.Target.Equal(ast.InputRootDocument) || ok && !ref[0].Equal(ast.InputRootDocument) {
		return
	}
	at := n.input
	for i := 1; i < len(ref); i++ {
		name := plain(ref[i].Value)
		if at.closed() && at.fields[name] == nil {
			n.found.add(spot(orElse(w.Location, n.near)), fixName(name, at.names()), "input has no field %s here", ref[:i+1])
			return
		}
		at = n.scope.step(at, ref[i])
	}
	if at != nil {
		n.literal(n.scope.follow(w.Value), at, orElse(w.Location, n.near))
	}
}

// literal checks names and words of a value against the fields that it sets.
func (n *nameCheck) literal(t *ast.Term, at *shape, loc *ast.Location) {
	if at == nil {
		return
	}
	switch v := t.Value.(type) {
	case ast.Object:
		n.members(v, at, loc)
	case *ast.Array:
		v.Foreach(func(element *ast.Term) { n.literal(element, at.items, loc) })
	case ast.Ref:
		for _, rule := range n.compiler.GetRulesExact(v) {
			if value := rule.Head.Value; value != nil && len(rule.Head.Args) == 0 {
				n.literal(value, at, orElse(rule.Location, loc))
			}
		}
	case ast.String:
		if word := string(v); len(at.enum) > 0 && !slices.Contains(at.enum, word) {
			n.found.add(spot(orElse(t.Location, loc)), fixName(word, at.enum), "input.%s is never %q", at.path, word)
		}
	}
}

func (n *nameCheck) members(object ast.Object, at *shape, loc *ast.Location) {
	object.Foreach(func(key, value *ast.Term) {
		name, text := key.Value.(ast.String)
		if text && at.closed() && at.fields[string(name)] == nil {
			n.found.add(spot(orElse(key.Location, loc)), fixName(string(name), at.names()), "input has no field %s here", below(at.path, string(name)))
			return
		}
		n.literal(value, n.scope.step(at, key), loc)
	})
}

// values returns the values of an object or a list, and whether they have keys.
func (p namespace) values() (values []any, keyed bool) {
	switch data := p.data.(type) {
	case map[string]any:
		for _, v := range data {
			values = append(values, v)
		}
		return values, true
	case []any:
		return data, false
	}
	return nil, false
}

// namespace is a place below data: of rules, of data, or of both.
type namespace struct {
	rules *ast.TreeNode
	data  any
}

// isRule reports whether the place is a rule. OPA checks the names inside its
// value.
func (p namespace) isRule() bool { return p.rules != nil && len(p.rules.Values) > 0 }

func (p namespace) child(name ast.Value) (below namespace, exists bool) {
	if p.rules != nil {
		below.rules = p.rules.Child(name)
	}
	exists = below.rules != nil
	switch data := p.data.(type) {
	case map[string]any:
		if key, ok := name.(ast.String); ok {
			value, there := data[string(key)]
			below.data, exists = value, exists || there
		}
	case []any:
		if i, ok := index(name); ok && i < len(data) {
			below.data, exists = data[i], true
		}
	}
	return below, exists
}

// isSetRef reports whether a reference leads to one of the sets that remit
// queries.
func isSetRef(ref ast.Ref) bool {
	return len(ref) > 2 && plain(ref[1].Value) == "remit" && isSet(plain(ref[2].Value))
}

func index(name ast.Value) (int, bool) {
	number, ok := name.(ast.Number)
	if !ok {
		return 0, false
	}
	i, whole := number.Int()
	return i, whole && i >= 0
}

// names returns the names at the place, without those that remit adds.
func (p namespace) names() []string {
	all := map[string]bool{}
	if p.rules != nil {
		for name := range p.rules.Children {
			if text := plain(name); !strings.HasPrefix(text, privatePrefix) {
				all[text] = true
			}
		}
	}
	if data, ok := p.data.(map[string]any); ok {
		for name := range data {
			all[name] = true
		}
	}
	return sortedKeys(all)
}
