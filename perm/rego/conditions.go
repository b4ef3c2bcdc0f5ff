package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/internal/suggest"
)

// conditions warns of conditions whose meaning differs from their reading.
func (l *lint) conditions(rule *ast.Rule) {
	uses := map[ast.Var]int{}
	ast.WalkVars(rule, func(v ast.Var) bool { uses[v]++; return false })
	set := setOf(rule.Module, rule)
	if set == setAllow {
		l.openDomain(rule)
	}
	ast.WalkExprs(rule, func(e *ast.Expr) bool {
		loc := orRule(e.Location, rule)
		l.wholeSet(e, loc)
		l.anyDiffers(e, loc, uses)
		l.wholeList(e, loc)
		l.localName(e, loc, uses)
		l.recent(e, loc)
		l.globbed(e, loc)
		l.patterned(e, loc)
		l.ending(e, loc)
		l.starred(e, loc)
		l.checkSwappedArguments(e, loc)
		l.differsFromOne(e, loc, uses)
		l.root(e, loc)
		l.method(e, loc)
		l.missing(e, loc, set)
		l.deletion(e, loc, set)
		if every, ok := e.Terms.(*ast.Every); ok && set == setAllow {
			l.everyOfNone(every, loc)
		}
		return false
	})
}

// wholeSet warns of a set as a condition: it is defined even if it is empty.
func (l *lint) wholeSet(e *ast.Expr, loc *ast.Location) {
	t, ok := e.Terms.(*ast.Term)
	if !ok {
		return
	}
	ref, ok := t.Value.(ast.Ref)
	if !ok || len(ref) != 3 || !isSetRef(ref) {
		return
	}
	name := plain(ref[2].Value)
	if e.Negated {
		l.warn(loc, "leave it out, since deny wins anyway, or write count("+name+") == 0", "%s is a set and always there: not %s never holds", name, name)
		return
	}
	l.warn(loc, "write count("+name+") > 0", "%s is a set and always there, also if it is empty: this condition always holds", name)
}

// anyDiffers warns of list[_] != "x", which holds if any one element differs.
func (l *lint) anyDiffers(e *ast.Expr, loc *ast.Location, uses map[ast.Var]int) {
	if callName(e) != "neq" || e.Negated || len(e.Operands()) != 2 {
		return
	}
	for i, op := range e.Operands() {
		other := l.follow(e.Operand(1 - i))
		ref, ok := l.follow(op).Value.(ast.Ref)
		if !ok || !ast.IsConstant(other.Value) || len(ref) < 2 {
			continue
		}
		v, ok := ref[len(ref)-1].Value.(ast.Var)
		if s := l.shapeOf(ast.NewTerm(ref[:len(ref)-1])); ok && uses[v] == 1 && s != nil && s.items != nil {
			l.warn(loc, "write not "+other.String()+" in input."+s.path, "this holds as soon as one element of input.%s is not %s, and never if there is none", s.path, other)
		}
	}
}

// wholeList warns of input.session.labels == ["x"].
func (l *lint) wholeList(e *ast.Expr, loc *ast.Location) {
	name, ops := callName(e), e.Operands()
	if name != "eq" && name != "equal" || len(ops) != 2 {
		return
	}
	for i, op := range ops {
		s := l.shapeOf(op)
		list, ok := ops[1-i].Value.(*ast.Array)
		if s == nil || !ok || list.Len() == 0 || !list.IsGround() || !slices.Contains([]string{"session.labels", "principal.roles", "tool.tags", "session.client.capabilities"}, s.path) {
			continue
		}
		l.warn(loc, "write "+list.Elem(0).String()+" in input."+s.path, "this holds only if input.%s is exactly %s, without any other", s.path, list)
	}
}

// localName warns of x = "value" if x is a variable that no other condition
// reads and a field of the input has its name.
func (l *lint) localName(e *ast.Expr, loc *ast.Location, uses map[ast.Var]int) {
	if callName(e) != "eq" && callName(e) != "assign" || len(e.Operands()) != 2 {
		return
	}
	v, ok := e.Operand(0).Value.(ast.Var)
	if !ok || uses[v] != 1 || !ast.IsConstant(e.Operand(1).Value) {
		return
	}
	name := string(v)
	if written := l.compiler.RewrittenVars[v]; written != "" {
		name = string(written)
	}
	if path := l.input.named(name); path != "" {
		l.warn(loc, "did you mean input."+path+" == "+e.Operand(1).String()+"?", "%s is a variable of this rule and gets the value: the condition always holds", name)
	}
}

// named returns the field with a name.
func (s *shape) named(name string) string {
	for _, field := range sortedKeys(s.fields) {
		below := s.fields[field]
		if field == name {
			return below.path
		}
		if path := below.named(name); path != "" {
			return path
		}
	}
	return ""
}

// mostRecent is the maximum number of calls in input.session.recent.
const mostRecent = 32

// recent warns of a count of the recent calls that is never reached.
func (l *lint) recent(e *ast.Expr, loc *ast.Location) {
	name := callName(e)
	if name != "gt" && name != "gte" && name != "eq" && name != "equal" {
		return
	}
	n, ok := l.follow(e.Operand(1)).Value.(ast.Number)
	if !ok {
		return
	}
	most, whole := n.Int()
	if most < mostRecent || most == mostRecent && name != "gt" || !whole || !l.countsRecent(e.Operand(0)) {
		return
	}
	l.warn(loc, "write sum([t.failed | some t in input.session.tools]), or another count of input.session.tools",
		"input.session.recent has %d calls at most: this never holds", mostRecent)
}

// countsRecent reports whether a term is the count of the recent calls.
func (l *lint) countsRecent(t *ast.Term) (found bool) {
	v, ok := t.Value.(ast.Var)
	if !ok || l.counts[v] == nil {
		return false
	}
	of := l.follow(l.counts[v])
	ast.WalkTerms(of, func(t *ast.Term) bool {
		s := l.shapeOf(t)
		found = found || s != nil && (s.path == "session.recent" || s.path == "session.recent[]")
		return found
	})
	return found
}

// globbed warns of a regular expression that should be a glob.
func (l *lint) globbed(e *ast.Expr, loc *ast.Location) {
	if callName(e) != "glob.match" {
		return
	}
	for _, text := range l.constants(e.Operand(0)) {
		if strings.HasPrefix(text, "^") || strings.HasSuffix(text, "$") || strings.Contains(text, ".*") && strings.Contains(text, `\.`) {
			l.warn(loc, "write a glob such as db/migrations/*.sql, or use regex.match", "%q looks like a regular expression, and glob.match takes a glob", text)
		}
	}
}

// patterned warns of a pattern that no text of the field matches: one that
// begins with a slash for a path, and one with a slash for a name without any.
func (l *lint) patterned(e *ast.Expr, loc *ast.Location) {
	name, ops := callName(e), e.Operands()
	var place *ast.Term
	switch {
	case name == "glob.match" && len(ops) > 2:
		place = ops[2]
	case name == "regex.match" && len(ops) > 1:
		place = ops[1]
	default:
		return
	}
	s := l.shapeOf(place)
	if s == nil {
		return
	}
	form, known := forms()[s.path]
	if !known {
		return
	}
	for _, text := range l.constants(ops[0]) {
		plain := text
		if name == "regex.match" {
			plain = ""
			if strings.HasPrefix(text, "^/") && !strings.Contains(text, "|") {
				plain = "/"
			}
		}
		if strings.ContainsAny(plain, `{[\`) {
			continue
		}
		if fix := badPattern(form, lastOf(s.path), plain); fix != "" {
			if name == "regex.match" {
				fix = "write the pattern from the first name on, such as ^secrets/"
			}
			l.warn(loc, fix, "no input.%s matches %q: it %s", s.path, text, form.why)
		}
	}
}

// badPattern returns how to write a glob that no text of the form matches, or "".
func badPattern(of form, field, glob string) string {
	switch {
	case of.parts != nil && of.parts(glob) != "":
		return "write the pattern without what is before the first name, such as secrets/**"
	case field == "name" && strings.Contains(glob, "/"):
		return "match input.access.resource.path, or leave out all up to the last /"
	}
	return ""
}

// ending warns of a path that ends with a slash, which none does.
func (l *lint) ending(e *ast.Expr, loc *ast.Location) {
	if callName(e) != "endswith" || len(e.Operands()) != 2 {
		return
	}
	s := l.shapeOf(e.Operand(0))
	if s == nil {
		return
	}
	form, known := forms()[s.path]
	for _, text := range l.constants(e.Operand(1)) {
		if known && lastOf(s.path) == "path" && strings.HasSuffix(text, "/") {
			l.warn(loc, "write lib.below(ROOT, FOLDER) for what is in a folder, or leave the last slash out", "input.%s never ends with %q: it %s", s.path, text, form.why)
		}
	}
}

// root warns of a root whose name is close to that of the workspace root.
func (l *lint) root(e *ast.Expr, loc *ast.Location) {
	for i, op := range e.Operands() {
		s := l.shapeOf(op)
		if s == nil || lastOf(s.path) != "root" || len(e.Operands()) != 2 {
			continue
		}
		for _, text := range l.constants(e.Operand(1 - i)) {
			if nearWorkspace(text) {
				l.warn(loc, "did you mean workspace?", "input.%s is compared with %q, which is nearly workspace", s.path, text)
			}
		}
	}
}

// nearWorkspace reports whether a name is probably a misspelt root workspace.
func nearWorkspace(name string) bool {
	return name != "workspace" && suggest.Name(name, []string{"workspace"}) != ""
}

// method warns of a method in lower case. Tools send the HTTP names, in upper
// case.
func (l *lint) method(e *ast.Expr, loc *ast.Location) {
	ops := e.Operands()
	for i, op := range ops {
		s := l.shapeOf(op)
		if s == nil || s.path != "access.method" || len(ops) != 2 {
			continue
		}
		var right []string
		for _, text := range l.constants(ops[1-i]) {
			if upper := strings.ToUpper(text); upper != text {
				right = append(right, upper)
			}
		}
		if len(right) > 0 {
			l.warn(loc, "write "+alternatives(right), "input.access.method is in upper case, as HTTP has it, and is compared with another spelling")
		}
	}
}

// contradicts warns of rules that give one name two values if both hold. This
// is an error, and it denies.
func (l *lint) contradicts(rules []*ast.Rule) {
	for i, a := range rules {
		for _, b := range rules[:i] {
			if headName(a) != headName(b) || !l.complete(a) || !l.complete(b) || a.Head.Value.Equal(b.Head.Value) {
				continue
			}
			one, other := l.facts(a, maxHelpers), l.facts(b, maxHelpers)
			if !one.whole || !other.whole || one.never != nil || other.never != nil || l.disjoint(one, other) {
				continue
			}
			l.warn(a.Loc(), "write else := between them, so that the first that holds counts",
				"%s has two values where this rule and the one at %s hold, which is an error and denies", headName(a), at(b.Loc()))
			return
		}
	}
}

func (*lint) complete(rule *ast.Rule) bool {
	return !rule.Default && rule.Else == nil && len(rule.Head.Args) == 0 && rule.Head.Key == nil && len(rule.Head.Ref()) == 1 &&
		rule.Head.Value != nil && ast.IsConstant(rule.Head.Value.Value)
}

func (*lint) disjoint(a, b facts) bool {
	for _, one := range a.list {
		if values, said := b.of(one.path); said && one.values != nil && !overlap(values, one.values) {
			return true
		}
	}
	return false
}

// missing warns of a condition in a restricting rule that a missing field makes
// undefined: then the rule does not fire.
func (l *lint) missing(e *ast.Expr, loc *ast.Location, set string) {
	restricts := set == setDeny || set == setAsk || set == setLimit || set == setEnsure || set == setHold || ofCommits(set)
	name := callName(e)
	if !restricts || name == "" {
		return
	}
	for _, op := range e.Operands() {
		s := l.shapeOf(op)
		if s == nil || s.path == "" {
			continue
		}
		switch {
		case e.Negated && name != "eq" && name != "equal" && slices.Contains([]string{"principal.chain", "session.requires", "session.client.selected", "access.resource.ext", "access.resource.segments"}, s.path):
			l.warn(loc, "write object.get(input."+parentOf(s.path)+", "+quote(lastOf(s.path))+", "+defaultOf(s)+")",
				"input.%s may be missing, and then this rule does not fire, since not does not hold either", s.path)
		case !e.Negated && name == "neq" && s.path == "access.resource.ext":
			l.warn(loc, "write not input."+s.path+" == …", "input.%s is missing for a name without an extension, and then this rule does not fire", s.path)
		}
	}
}

func parentOf(path string) string { return path[:max(0, strings.LastIndexByte(path, '.'))] }
func lastOf(path string) string   { return path[strings.LastIndexByte(path, '.')+1:] }

func defaultOf(s *shape) string {
	if s.items != nil {
		return "[]"
	}
	return `""`
}

// everyOfNone warns of an allow for every element of a list that can be empty.
func (l *lint) everyOfNone(every *ast.Every, loc *ast.Location) {
	if s := l.shapeOf(every.Domain); s != nil && (s.path == "principal.roles" || s.path == "principal.chain") {
		l.warn(loc, "write some … in input."+s.path+", or add count(input."+s.path+") > 0", "every holds if input.%s is empty", s.path)
	}
}
