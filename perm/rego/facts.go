package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// fact is what the conditions of a rule state about one field of the input.
type fact struct {
	path   string
	values []string // the field has one of these values; nil: it is present
	why    string
	fix    string
	at     *ast.Location
	own    bool // a condition states the fact; else it follows from another fact
}

// facts holds what the conditions of a rule state together.
type facts struct {
	list  []fact
	whole bool // the rule has no other condition
	never *ast.Location
}

// of returns the values that a field can have, and whether any condition
// restricts them.
func (f facts) of(path string) (values []string, said bool) {
	for _, one := range f.list {
		switch {
		case one.path != path || one.values == nil:
		case !said:
			values, said = one.values, true
		default:
			values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !slices.Contains(one.values, v) })
		}
	}
	return values, said
}

func (f facts) has(path string) bool {
	return slices.ContainsFunc(f.list, func(one fact) bool { return one.path == path })
}

// maxHelpers bounds how deep the analysis follows rules into others.
const maxHelpers = 4

// facts reads the conditions of a rule, and those of the helpers that it names.
func (l *lint) facts(rule *ast.Rule, depth int) facts {
	out := facts{whole: true}
	for _, e := range rule.Body {
		l.condition(&out, e, orRule(e.Location, rule), depth)
	}
	return out
}

func (l *lint) condition(out *facts, e *ast.Expr, loc *ast.Location, depth int) {
	if e.Negated || len(e.With) > 0 {
		out.whole = false
		return
	}
	switch terms := e.Terms.(type) {
	case *ast.Term:
		l.single(out, terms, loc, depth)
	case []*ast.Term:
		l.call(out, e, loc)
	default:
		out.whole = false
	}
}

// single reads a condition without an operator.
func (l *lint) single(out *facts, t *ast.Term, loc *ast.Location, depth int) {
	switch v := t.Value.(type) {
	case ast.Boolean:
		if !bool(v) {
			out.never = loc
		}
		return
	case ast.Ref:
		if l.helper(out, v, depth) {
			return
		}
	}
	out.whole = false
	l.there(out, t, loc)
}

// helper adds the facts of a rule that is only true or undefined.
func (l *lint) helper(out *facts, ref ast.Ref, depth int) bool {
	rules := l.compiler.GetRulesExact(ref)
	if len(rules) == 0 || depth == 0 {
		return false
	}
	var all []facts
	for _, rule := range rules {
		if rule.Default || rule.Else != nil || len(rule.Head.Args) > 0 || rule.Head.Key != nil || !ast.Boolean(true).Equal(rule.Head.Value.Value) {
			return false
		}
		all = append(all, l.facts(rule, depth-1))
	}
	out.whole = out.whole && len(all) == 1 && all[0].whole && all[0].never == nil
	for _, one := range all[0].list {
		values, said := all[0].of(one.path)
		for _, other := range all[1:] {
			more, also := other.of(one.path)
			values, said = append(slices.Clone(values), more...), said && also
		}
		if len(all) == 1 || said {
			one.values, one.own = values, false
			out.list = append(out.list, one)
		}
	}
	return true
}

// call reads a condition with an operator.
func (l *lint) call(out *facts, e *ast.Expr, loc *ast.Location) {
	name, ops := callName(e), e.Operands()
	switch {
	case (name == "eq" || name == "equal") && (l.equal(out, ops[0], ops[1], loc) || l.equal(out, ops[1], ops[0], loc)):
		return
	case name == "internal.member_2":
		if s := l.one(ops[0]); s != nil {
			if values, ok := l.texts(ops[1]); ok {
				out.list = append(out.list, inputFact(s.path, values, loc))
				return
			}
		}
	case name == "eq" && (isVar(ops[0]) || isVar(ops[1])): // assigns a value to a variable
		for _, op := range ops {
			l.there(out, op, loc)
			out.whole = out.whole && (isVar(op) || ast.IsConstant(op.Value) || l.one(op) != nil)
		}
		return
	}
	out.whole = false
	for _, op := range ops {
		l.there(out, op, loc)
	}
}

// one returns the field that a term refers to, if it is exactly one. An element
// of a list can be a different one each time that a rule names it.
func (l *lint) one(t *ast.Term) *shape {
	s := l.shapeOf(t)
	if s == nil || s.path == "" || strings.ContainsAny(s.path, "[*") {
		return nil
	}
	return s
}

func inputFact(path string, values []string, loc *ast.Location) fact {
	return fact{path: path, values: values, why: "input." + path + " is " + alternatives(values), at: loc, own: true}
}

func isVar(t *ast.Term) bool {
	_, is := t.Value.(ast.Var)
	return is
}

func (l *lint) equal(out *facts, place, with *ast.Term, loc *ast.Location) bool {
	s := l.one(place)
	text, constant := with.Value.(ast.String)
	if s == nil || !constant {
		return false
	}
	out.list = append(out.list, inputFact(s.path, []string{string(text)}, loc))
	return true
}

// there adds the fields that must be present for a condition to hold.
func (l *lint) there(out *facts, t *ast.Term, loc *ast.Location) {
	s := l.one(t)
	if s == nil { // of an element, only that some element has the field
		if of := l.shapeOf(t); of != nil && ofContent(of.path) {
			s = of
		}
	}
	if s != nil {
		out.list = append(out.list, fact{path: s.path, at: loc, own: true})
	}
}

// ofContent reports whether a field holds the content of a changed file.
func ofContent(path string) bool {
	name, change := strings.CutPrefix(path, "changes[].")
	return change && slices.Contains([]string{"text", "media_type", "size", "cut", "binary", "masked"}, name)
}

// texts returns the texts of a list or set, and whether it holds only texts.
func (l *lint) texts(t *ast.Term) ([]string, bool) {
	t = l.follow(t)
	list, ok := t.Value.(interface{ Len() int })
	if _, object := t.Value.(ast.Object); !ok || object {
		return nil, false
	}
	all := l.constants(t)
	return all, len(all) > 0 && len(all) == list.Len()
}

// follows returns the facts that follow from others.
func follows(set string, f facts) (more []fact) {
	add := func(path, why, fix string, at *ast.Location, values ...string) {
		more = append(more, fact{path: path, values: values, why: why, fix: fix, at: at})
	}
	switch set {
	case setEnsure:
		add("purpose", "ensure is asked only with purpose verify", "remove the condition on input.purpose", nil, "verify")
	case setHide:
		add("purpose", "hide is asked only with purpose list", "write deny if calls are meant", nil, "list")
	case setDenyCommit, setAskCommit:
		add("purpose", set+" is asked only with purpose commit", "remove the condition on input.purpose", nil, "commit")
	case setDeny, setAsk, setHold, setAllow, setLimit, setRequire:
		add("purpose", set+" does not count with purpose verify", "write ensure for what is looked at after the call", nil, "run", "apply", "revert", "merge", "list")
	}
	for _, one := range f.list {
		if p, known := presence(one.path); known {
			add(p.path, "input."+one.path+" is there only where input."+p.path+" is "+alternatives(p.values), p.fix, one.at, p.values...)
		}
	}
	return more
}

// presence returns the condition under which a field of the input is present.
func presence(path string) (fact, bool) {
	only := func(path, fix string, values ...string) (fact, bool) {
		return fact{path: path, fix: fix, values: values}, true
	}
	inside, isResource := strings.CutPrefix(path, "access.resource.")
	const otherKind = "name the kind that has it, or leave one of the two out"
	switch {
	case path == "output" || strings.HasPrefix(path, "output."):
		return only("purpose", "write ensure for what is looked at after the call", "verify")
	case ofContent(path):
		return only("purpose", "write ensure for what is looked at after the call", "verify")
	case path == "access.git" || strings.HasPrefix(path, "access.git."):
		return only("purpose", "leave the condition on input.purpose out", "apply")
	case strings.HasPrefix(path, "call.args."):
		return only("purpose", "write deny: a condition on arguments is about calls", "run", "apply", "verify", "revert", "merge")
	case path == "txn.effects" || path == "txn.effects_cut" || strings.HasPrefix(path, "txn.totals"):
		return only("purpose", "write ask_commit or deny_commit", "commit")
	case path == "access.method":
		return only("access.resource.kind", otherKind, "http", "https")
	case !isResource:
		return fact{}, false
	case inside == "host" || inside == "scheme" || inside == "port":
		return only("access.resource.kind", otherKind, "http", "https")
	case inside == "root":
		return only("access.resource.kind", otherKind, "file")
	case inside == "ext":
		return only("access.resource.kind", otherKind, "file", "http", "https")
	case inside == "database" || inside == "table" || inside == "statement":
		return only("access.resource.kind", otherKind, "db")
	case inside == "program" || inside == "argv":
		return only("access.resource.kind", otherKind, "exec")
	case inside == "server":
		return only("access.resource.kind", otherKind, "mcp")
	}
	return fact{}, false
}

// alternatives joins values for use in a sentence.
func alternatives(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(v)
	}
	return strings.Join(quoted, " or ")
}
