package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// checkShape checks the heads of rules. A rule with the name of a set must be a
// set. Otherwise its author relies on a rule that remit does not query.
func (m *modules) checkShape() error {
	var found problems
	sets := 0
	for _, name := range m.names {
		mod := m.parsed[name]
		found.checkPackage(mod)
		for _, rule := range mod.Rules {
			found.checkNesting(rule)
			if strings.HasPrefix(headName(rule), privatePrefix) {
				found.add(spot(rule.Loc()), "choose another name", "names that begin with %s are taken", privatePrefix)
				continue
			}
			if inRemit(mod) && found.checkRule(rule) {
				sets++
			}
		}
	}
	for _, name := range sortedKeys(m.tests) {
		found.checkTests(m.tests[name])
	}
	if len(found) == 0 && sets == 0 {
		found.addEmpty(m)
	}
	return found.err()
}

// checkTests refuses reasons in a test file. Test files never decide, so the
// author could rely on a denial that does not exist.
func (p *problems) checkTests(mod *ast.Module) {
	for _, rule := range mod.Rules {
		if set := setOf(mod, rule); set != "" {
			p.add(spot(rule.Loc()), "move the rule to a file whose name does not end in _test.rego",
				"this rule adds to %s but stands in a file of tests, which never decides", set)
		}
	}
}

// checkPackage refuses a package with the name of a set.
func (p *problems) checkPackage(mod *ast.Module) {
	path := mod.Package.Path
	if len(path) < 3 || plain(path[1].Value) != "remit" {
		return
	}
	if name := plain(path[2].Value); isSet(name) {
		p.add(spot(mod.Package.Location), "give the package another name",
			"package %s takes the place of the set %s", packageName(mod), name)
	}
}

// checkRule reports whether a rule of package remit adds to a set.
func (p *problems) checkRule(rule *ast.Rule) bool {
	name := headName(rule)
	switch {
	case !isSet(name):
	case rule.Default:
		p.add(spot(rule.Loc()), "remove the line: where no rule matches the answer is a denial",
			"%s is a set of reasons and has no default", name)
	case rule.Else != nil:
		p.add(spot(rule.Loc()), "write a second rule instead of else", "%s is a set of reasons and has no else", name)
	case !isPartialSet(rule):
		p.add(spot(rule.Loc()), "write "+name+` contains "why" if { conditions }`,
			"%s is a set of reasons, and this rule does not add one", name)
	default:
		p.checkElement(name, rule)
		return true
	}
	return false
}

// maxNesting bounds how deep comprehensions and every can be nested. The time
// that OPA takes to compile them grows about threefold with each level.
const maxNesting = 8

// checkNesting reports a rule whose bodies are nested too deep.
func (p *problems) checkNesting(rule *ast.Rule) {
	if depth := nesting(rule); depth > maxNesting {
		p.add(spot(rule.Loc()), "give the inner ones names of their own, as helper rules",
			"comprehensions and every are nested %d deep; at most %d are valid", depth, maxNesting)
	}
}

// nesting returns how many comprehensions and every are nested in x.
func nesting(x any) (depth int) {
	ast.NewGenericVisitor(func(inner any) bool {
		switch inner := inner.(type) {
		case *ast.ArrayComprehension:
			depth = max(depth, 1+nesting(inner.Term), 1+nesting(inner.Body))
		case *ast.SetComprehension:
			depth = max(depth, 1+nesting(inner.Term), 1+nesting(inner.Body))
		case *ast.ObjectComprehension:
			depth = max(depth, 1+nesting(inner.Key), 1+nesting(inner.Value), 1+nesting(inner.Body))
		case *ast.Every:
			depth = max(depth, nesting(inner.Domain), 1+nesting(inner.Body))
		default:
			return false
		}
		return true
	}).Walk(x)
	return depth
}

// checkElement checks an element that is a constant.
func (p *problems) checkElement(set string, rule *ast.Rule) {
	if object := knownLimit(rule); object != nil && set == setLimit {
		if _, err := limitOf(object); err != nil {
			p.add(spot(rule.Loc()), shapeLimit, "%v", err)
		}
		return
	}
	if object, ok := rule.Head.Key.Value.(ast.Object); ok && set == setAsk {
		if err := checkAsk(object); err != nil {
			p.add(spot(rule.Loc()), shapeAsk, "%v", err)
		}
		return
	}
	value := rule.Head.Key.Value
	switch value.(type) {
	case ast.Object, *ast.Array, ast.Set: // not text, even with variables in it
	default:
		if !ast.IsConstant(value) {
			return
		}
	}
	text, ok := value.(ast.String)
	if !ok {
		p.add(spot(rule.Loc()), "write a text in quotes", "an element of %s is a text, not of type %s", set, ast.ValueName(value))
		return
	}
	if bad := badElement(set, string(text)); bad != "" {
		fix := ""
		switch {
		case set == setRequire:
			fix = fixName(string(text), requirements())
		case set == setRedact:
			fix = fixPointer(string(text))
		case set == setMask && !strings.Contains(string(text), "://"):
			fix = "write " + quote("file://*/"+strings.TrimLeft(string(text), "/"))
		case set == setMask:
			fix = "write a pattern such as file://*/**/.git/**: a mask hides files"
		}
		p.add(spot(rule.Loc()), fix, "%q: %s", string(text), bad)
	}
}

// fixPointer suggests a pointer for an element of redact that is none.
func fixPointer(text string) string {
	pointer := text
	if !strings.HasPrefix(text, "/") {
		pointer = "/" + strings.ReplaceAll(text, ".", "/")
	}
	if inside, ok := strings.CutPrefix(pointer, "/input/"); ok {
		pointer = "/args/" + inside
	}
	if !isPointer(pointer) {
		pointer = "/args" + strings.TrimRight(pointer, "/")
	}
	if !isPointer(pointer) {
		return `write ~0 for ~ and ~1 for / within a name, such as "/args/a~1b"`
	}
	return "write " + quote(pointer)
}

// addEmpty reports that a policy without rules denies everything.
func (p *problems) addEmpty(m *modules) {
	const fix = `write package remit and rules such as: allow contains "why" if { conditions }`
	var others []string
	for _, name := range m.names {
		if mod := m.parsed[name]; !inRemit(mod) && !slices.Contains(others, packageName(mod)) {
			others = append(others, packageName(mod))
		}
	}
	if len(others) > 0 {
		p.add(spot(m.parsed[m.names[0]].Package.Location), fix, "the policy defines no rule of package remit, only of %v", others)
		return
	}
	for _, name := range m.names {
		for _, rule := range m.parsed[name].Rules {
			if near := fixName(headName(rule), setNames()); strings.HasPrefix(near, "did you mean") {
				p.add(spot(rule.Loc()), near, "no set has the name %s, and the policy defines no other rule", headName(rule))
				return
			}
		}
	}
	p.add("", fix, "the policy defines no rule")
}

// checkUse finds sets that remit does not query: a misspelt name in package
// remit, or the name of a set in another package.
func (m *modules) checkUse(c *ast.Compiler) error {
	var found problems
	used := usedNames(c)
	for _, name := range m.names {
		mod := m.parsed[name]
		for _, rule := range mod.Rules {
			if isPartialSet(rule) && !used.has(mod, headName(rule)) && !m.leftOut[headName(rule)] {
				found.checkUnused(mod, rule)
			}
		}
	}
	return found.err()
}

func (p *problems) checkUnused(mod *ast.Module, rule *ast.Rule) {
	name := headName(rule)
	switch {
	case inRemit(mod) && !isSet(name):
		p.add(spot(rule.Loc()), fixName(name, setNames()), "no set has the name %s, and no rule uses it", name)
	case !inRemit(mod) && isSet(name):
		p.add(spot(rule.Loc()), "write package remit, or use it in a rule of that package",
			"%s of package %s is not asked for, and no rule uses it", name, packageName(mod))
	}
}

// ruleRefs holds the references of a policy's rules.
type ruleRefs struct {
	names  map[string]bool // package.name
	wholes []ast.Ref       // documents that rules read whole, or by a computed name
}

func usedNames(c *ast.Compiler) ruleRefs {
	u := ruleRefs{names: map[string]bool{}}
	for _, mod := range c.Modules {
		for _, rule := range mod.Rules {
			ast.WalkRefs(rule, func(ref ast.Ref) bool {
				u.add(ref)
				return false
			})
		}
	}
	return u
}

func (u *ruleRefs) add(ref ast.Ref) {
	if !ref[0].Equal(ast.DefaultRootDocument) {
		return
	}
	constant := ref.ConstantPrefix()
	u.wholes = append(u.wholes, constant)
	for i := 3; i <= len(constant); i++ {
		u.names[constant[1:i].String()] = true
	}
}

// has reports whether a rule refers to name in the package, or to the whole
// package.
func (u *ruleRefs) has(mod *ast.Module, name string) bool {
	if u.names[packageName(mod)+"."+name] {
		return true
	}
	for _, whole := range u.wholes {
		if mod.Package.Path.HasPrefix(whole) {
			return true
		}
	}
	return false
}
