package rego

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// fieldCheck checks rules against the input schema in places that OPA's type
// checker does not cover. These are values of enums, keys of object.get,
// targets of with, and names inside maps.
type fieldCheck struct {
	*scope
	params map[ast.Var]bool // parameters of the current function
	set    string           // set of the current rule, or ""
	found  problems
	notes  []UncheckedRef
	forms  map[string]form
	// libArgs are the formats of arguments of the library.
	libArgs []libArg
	lib     bool // the policy uses the library of remit, not one of its own
	isLib   bool // the current module is a library, of remit or of a policy
}

// checkFields checks every rule. It returns the references that it cannot
// check.
func (m *modules) checkFields(c *ast.Compiler) ([]UncheckedRef, error) {
	input, err := inputShape()
	if err != nil {
		return nil, err
	}
	f := &fieldCheck{forms: forms(), libArgs: libArgs(), lib: m.hasLib()}
	for _, name := range m.names {
		mod := c.Modules[name]
		f.scope, f.isLib = newScope(c, mod, input), mod.Package.Path.Equal(libRef)
		for _, rule := range mod.Rules {
			f.set = setOf(mod, rule)
			f.rule(rule)
		}
	}
	slices.SortStableFunc(f.notes, func(a, b UncheckedRef) int { return strings.Compare(a.At, b.At) })
	return slices.Compact(m.ownNotes(f.notes)), f.found.err()
}

func (f *fieldCheck) rule(rule *ast.Rule) {
	f.params = map[ast.Var]bool{}
	for _, arg := range rule.Head.Args {
		if v, ok := arg.Value.(ast.Var); ok {
			f.params[v] = true
		}
		if _, ok := arg.Value.(ast.String); ok {
			f.note(rule.Loc(), "a value compared with a function's parameter is not checked")
		}
	}
	ast.WalkTerms(rule, func(t *ast.Term) bool {
		if ref, ok := t.Value.(ast.Ref); ok {
			f.ref(ref, orRule(t.Location, rule))
			f.commitPart(ref, orRule(t.Location, rule))
		}
		return false
	})
	ast.WalkExprs(rule, func(e *ast.Expr) bool {
		f.expr(e, orRule(e.Location, rule))
		return false
	})
}

func orRule(loc *ast.Location, rule *ast.Rule) *ast.Location {
	return orElse(loc, rule.Loc())
}

// orElse returns a location, or the other if the compiler generated the term.
func orElse(loc, other *ast.Location) *ast.Location {
	if loc == nil || loc.File == "" {
		return other
	}
	return loc
}

func (f *fieldCheck) note(loc *ast.Location, text string, args ...any) {
	f.notes = append(f.notes, UncheckedRef{At: at(loc), Text: fmt.Sprintf(text, args...)})
}

// ref follows a reference through the document.
func (f *fieldCheck) ref(ref ast.Ref, loc *ast.Location) {
	if v, ok := ref[0].Value.(ast.Var); ok && f.params[v] && len(ref) > 1 {
		f.note(loc, "%s: fields of a function's parameter are not checked", f.spell(ref))
		return
	}
	f.pastRead(ref, loc)
	f.path(f.shapeOf(ref[0]), ref[1:], ref, loc)
}

// path follows a path from a place of the document, as far as it is known. The
// argument whole is the term of the policy.
func (f *fieldCheck) path(from *shape, path []*ast.Term, whole ast.Value, loc *ast.Location) {
	for _, part := range path {
		if from.closed() {
			name, constant := f.follow(part).Value.(ast.String)
			switch {
			case !constant:
				f.note(loc, "%s: a computed key of input is not checked", f.spell(whole))
				return
			case from.fields[string(name)] == nil:
				f.found.add(spot(loc), fixName(string(name), from.names()), "input has no field %s here", string(name))
				return
			}
		}
		from = f.step(from, part)
	}
}

// spell writes a value as its author did: with the names that variables had
// before the compiler renamed them, and without the variables that it added.
func (f *fieldCheck) spell(v ast.Value) string {
	if name, ok := v.(ast.Var); ok && f.compiler.RewrittenVars[name] == "" {
		if _, got := f.gets[name]; got {
			return "this value"
		}
		v = f.follow(ast.NewTerm(v)).Value
		if name, ok := v.(ast.Var); ok && name.IsGenerated() {
			return "this value"
		}
	}
	text := v.String()
	ast.WalkVars(v, func(name ast.Var) bool {
		written, ok := f.compiler.RewrittenVars[name]
		if !ok && name.IsGenerated() || written.IsGenerated() || written.IsWildcard() {
			written = "_"
		}
		if written != "" {
			text = strings.ReplaceAll(text, string(name), string(written))
		}
		return false
	})
	return text
}

func (f *fieldCheck) expr(e *ast.Expr, loc *ast.Location) {
	for _, w := range e.With {
		if w.Target.Equal(ast.InputRootDocument) || w.Target.Value.Compare(ast.InputRootRef) == 0 {
			f.note(loc, "a document that takes the place of input is not checked")
		}
	}
	ops := e.Operands()
	f.impossible(callName(e), ops, loc)
	f.libCall(e, loc)
	switch name := callName(e); {
	case name == "":
	case name == "eq" || name == "equal" || name == "neq":
		f.compare(ops[0], ops[1], loc)
		f.compare(ops[1], ops[0], loc)
	case name == "internal.member_2":
		f.compare(ops[0], ops[1], loc)
	case name == "internal.member_3":
		f.compare(ops[1], ops[2], loc)
	case name == "object.get":
		f.get(e, loc)
	case strings.HasPrefix(name, "time."):
		f.time(name, ops, loc)
	case ast.BuiltinMap[name] != nil:
		f.whole(name, ops, loc)
	}
}

// compare checks the constants that a field is compared with against its enum.
func (f *fieldCheck) compare(t, with *ast.Term, loc *ast.Location) {
	values := f.constants(with)
	if v, ok := t.Value.(ast.Var); ok && f.params[v] && len(values) > 0 {
		f.note(loc, "a value compared with a function's parameter is not checked")
		return
	}
	s := f.shapeOf(t)
	if s == nil || len(s.enum) == 0 {
		return
	}
	for _, value := range values {
		if s.path == "purpose" && value == string(perm.PurposeCommit) && f.set != "" && !ofCommits(f.set) {
			f.found.add(spot(loc), "write "+setAskCommit+" or "+setDenyCommit, "%s is never %q in a rule of %s", f.spell(t.Value), value, f.set)
		}
		if !slices.Contains(s.enum, value) {
			f.found.add(spot(loc), fixName(value, s.enum), "%s can never be %q", f.spell(t.Value), value)
		}
	}
}

// commitPart refuses a rule about calls that reads what only a commit has, and
// a rule about commits that reads what only a call has.
func (f *fieldCheck) commitPart(ref ast.Ref, loc *ast.Location) {
	if f.set == "" {
		return
	}
	s := f.shapeOf(ast.NewTerm(ref))
	if s == nil {
		return
	}
	first, rest, _ := strings.Cut(s.path, ".")
	below, _, _ := strings.Cut(rest, ".")
	below = strings.TrimSuffix(below, "[]")
	ofCommit := first == "txn" && slices.Contains([]string{"effects", "effects_cut", "totals"}, below)
	switch {
	case ofCommit && !ofCommits(f.set):
		f.found.add(spot(loc), "write "+setAskCommit+" or "+setDenyCommit, "input.txn.%s exists only at a commit, and %s does not decide it", below, f.set)
	case ofCommits(f.set) && slices.Contains([]string{"tool", "call", "access", "output", "changes"}, first):
		f.found.add(spot(loc), "read input.txn.effects, which names the tool, the call and the resource of each effect", "a commit has no input.%s, so this rule of %s never fires", first, f.set)
	}
}

// get checks the key, or path of keys, of an object.get.
func (f *fieldCheck) get(e *ast.Expr, loc *ast.Location) {
	from := f.shapeOf(e.Operand(0))
	if from == nil {
		return
	}
	path, ok := f.getPath(e)
	if !ok {
		if from.closed() {
			f.note(loc, "a computed key of object.get is not checked")
		}
		return
	}
	f.path(from, path, e.Operand(0).Value, loc)
}

// whole records built-ins that receive a part of the document and can choose
// any of its fields.
func (f *fieldCheck) whole(name string, ops []*ast.Term, loc *ast.Location) {
	for _, op := range ops {
		if f.shapeOf(op).closed() {
			f.note(loc, "what %s picks from %s is not checked", name, f.spell(op.Value))
		}
	}
}

// time refuses time zones that depend on the host.
func (f *fieldCheck) time(name string, ops []*ast.Term, loc *ast.Location) {
	for _, op := range ops {
		pair, ok := f.follow(op).Value.(*ast.Array)
		if !ok || pair.Len() < 2 {
			continue
		}
		switch zone := f.follow(pair.Elem(1)).Value.(type) {
		case ast.String:
			if zone == "Local" {
				f.found.add(spot(loc), `name the zone, such as "UTC" or "Europe/Berlin"`, "the time zone Local depends on the host")
			}
		default:
			f.note(loc, "a time zone that is not written out is not checked")
		}
	}
	if name == "time.parse_ns" {
		f.layout(ops[0], loc)
	}
}

// layout refuses layouts with the abbreviation of a time zone. The offset of
// such a zone depends on the zone of the host.
func (f *fieldCheck) layout(op *ast.Term, loc *ast.Location) {
	named := []string{"UnixDate", "RFC822", "RFC850", "RFC1123"}
	for _, layout := range f.constants(op) {
		if strings.Contains(layout, "MST") || slices.Contains(named, layout) {
			f.found.add(spot(loc), "use a layout with a numeric offset, such as RFC3339",
				"what an abbreviated time zone means depends on the host")
		}
	}
}
