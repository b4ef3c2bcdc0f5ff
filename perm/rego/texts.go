package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// globFields are the last names of the fields that a glob is often compared
// with.
func globFields() []string {
	return []string{"path", "name", "host", "ext", "program", "table", "database", "text", "url"}
}

// starred warns of a star in a text that is compared as it is.
func (l *lint) starred(e *ast.Expr, loc *ast.Location) {
	name, ops := callName(e), e.Operands()
	if !slices.Contains([]string{"eq", "equal", "neq", "internal.member_2", "startswith", "endswith", "contains"}, name) || len(ops) != 2 {
		return
	}
	for i, op := range ops {
		s := l.shapeOf(op)
		if s == nil || !slices.Contains(globFields(), lastOf(s.path)) || i == 1 && name != "eq" && name != "equal" && name != "neq" {
			continue
		}
		for _, text := range l.constants(ops[1-i]) {
			if strings.Contains(text, "*") && text != "*" {
				l.warn(loc, l.globFor(s, text), "input.%s is compared with %q as it is: * is not a pattern here", s.path, text)
			}
		}
	}
}

// globFor returns a condition that reads text as a pattern.
func (*lint) globFor(s *shape, text string) string {
	sep := "/"
	if lastOf(s.path) == "host" {
		sep = "."
	}
	return "write glob.match(" + quote(text) + `, ["` + sep + `"], input.` + s.path + ")"
}

// checkSwappedArguments warns of startswith("x", input.y), whose arguments are in the wrong
// order, and of glob.match with the separator of host names for a path.
func (l *lint) checkSwappedArguments(e *ast.Expr, loc *ast.Location) {
	name, ops := callName(e), e.Operands()
	switch name {
	case "startswith", "endswith", "contains":
		text, constant := l.follow(ops[0]).Value.(ast.String)
		s := l.shapeOf(ops[1])
		if constant && s != nil {
			fixed := name + "(input." + s.path + ", " + text.String() + ")"
			l.warn(loc, "write "+fixed, "%s looks for input.%s in the text %s, and not for the text in the field", name, s.path, text)
		}
	case "glob.match":
		seps, ok := l.follow(ops[1]).Value.(*ast.Array)
		s := l.shapeOf(ops[2])
		if ok && seps.Len() == 0 && s != nil && slices.Contains([]string{"path", "text", "name"}, lastOf(s.path)) {
			l.warn(loc, `write ["/"], or null if * may match "/" too`, `glob.match with [] takes "." as separator: * does not match a name with a dot, such as a.txt`)
		}
	}
}

// differsFromOne warns of input.x != y for any y of a list of constants. It
// holds for every value if the list has two.
func (l *lint) differsFromOne(e *ast.Expr, loc *ast.Location, uses map[ast.Var]int) {
	if callName(e) != "neq" || e.Negated || len(e.Operands()) != 2 {
		return
	}
	for i, op := range e.Operands() {
		s := l.shapeOf(e.Operand(1 - i))
		ref, ok := l.follow(op).Value.(ast.Ref)
		if s == nil || !ok || len(ref) != 2 {
			continue
		}
		list := l.follow(ref[:1][0])
		v, variable := ref[1].Value.(ast.Var)
		texts, all := l.texts(list)
		if variable && all && len(texts) > 1 && uses[v] <= 2 {
			l.warn(loc, "write not input."+s.path+" in "+list.String(),
				"this holds as soon as input.%s differs from one of %s, so it always holds", s.path, alternatives(texts))
		}
	}
}

// openDomain warns of a permission for each host whose name ends with a domain,
// without a dot before it. It includes hosts of other owners.
func (l *lint) openDomain(rule *ast.Rule) {
	ast.WalkExprs(rule, func(e *ast.Expr) bool {
		if callName(e) != "endswith" || e.Negated {
			return false
		}
		s := l.shapeOf(e.Operand(0))
		if s == nil || lastOf(s.path) != "host" {
			return false
		}
		for _, text := range l.constants(e.Operand(1)) {
			if strings.Contains(text, ".") && !strings.HasPrefix(text, ".") && !strings.Contains(text, "*") {
				l.warn(orRule(e.Location, rule), "write lib.https_to({"+quote(text)+"}) with import data.remit.lib",
					"%q is also the end of other domains, such as evil-%s", text, text)
			}
		}
		return false
	})
}

// testOfSet warns of a test whose only condition is a set. A set is defined
// also if it is empty.
func (l *lint) testOfSet(mod *ast.Module, rule *ast.Rule) {
	for _, e := range rule.Body {
		t, ok := e.Terms.(*ast.Term)
		if !ok {
			continue
		}
		name := setNamed(mod, t.Value)
		switch {
		case name == "":
		case e.Negated:
			l.warn(orRule(e.Location, rule), "write count("+t.String()+") == 0", "%s is a set and always there: not %s never holds", name, t)
		default:
			l.warn(orRule(e.Location, rule), "write count("+t.String()+") > 0", "%s is a set and always there, also if it is empty: this test always passes", name)
		}
	}
}

// setNamed returns the set of package remit that a value of a module as written
// refers to, or "".
func setNamed(mod *ast.Module, v ast.Value) string {
	if name, ok := v.(ast.Var); ok {
		v = ast.Ref{ast.NewTerm(name)}
	}
	ref, ok := v.(ast.Ref)
	if !ok || !ref.IsGround() && len(ref) > 1 {
		return ""
	}
	name, ok := ref[0].Value.(ast.Var)
	if !ok {
		return ""
	}
	if inRemit(mod) && len(ref) == 1 && isSet(string(name)) {
		return string(name)
	}
	for _, i := range mod.Imports {
		if path, ok := i.Path.Value.(ast.Ref); ok && i.Name().Equal(name) {
			ref = path.Concat(ref[1:])
		}
	}
	if len(ref) == 3 && isSetRef(ref) {
		return plain(ref[2].Value)
	}
	return ""
}
