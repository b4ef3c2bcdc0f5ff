package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/internal/suggest"
)

// Tool describes a tool to WarningsFor.
type Tool struct {
	Name    string
	Version string
	Classes []string // effect classes of its calls; empty: unknown
	Args    []string // names of its arguments; nil: any
	Missing []string // optional arguments among Args

	Types    map[string]string   // JSON types of arguments that have exactly one
	Enums    map[string][]string // all valid texts of arguments that have such a list
	Counters []string            // names of its counters; nil: any
}

// WarningsFor returns the result of Warnings and more warnings. They concern
// rules that name tools, arguments, versions and effect classes that these
// tools do not have. If closed is true, there are no other tools: each other
// name is a warning. If not, only a similar name is.
func (e *Engine) WarningsFor(tools []Tool, closed bool) []Problem {
	if e == nil || e.rules == nil {
		return nil
	}
	l, err := e.lint()
	if err != nil {
		return []Problem{{Text: err.Error()}}
	}
	l.all()
	t := toolLint{lint: l, tools: map[string][]Tool{}, closed: closed}
	for _, tool := range tools {
		t.tools[tool.Name] = append(t.tools[tool.Name], tool)
	}
	for _, r := range l.rules {
		if !r.pack {
			t.rule(r)
		}
	}
	for _, name := range l.modules.own() {
		for _, rule := range l.compiler.Modules[name].Rules {
			t.counts(rule)
		}
	}
	return l.sorted()
}

// toolLint checks rules against the existing tools.
type toolLint struct {
	*lint
	tools  map[string][]Tool // the versions of each tool
	closed bool
}

func (t *toolLint) rule(r setRule) {
	names, said := r.facts.of("tool.name")
	var known []Tool
	all := true
	for _, name := range names {
		if versions, there := t.tools[name]; there {
			known = append(known, versions...)
		} else {
			all = false
			t.unknown(name, factAt(r.facts, "tool.name", r.rule))
		}
	}
	if object, ok := r.rule.Head.Key.Value.(ast.Object); ok && r.set == setLimit {
		if list := object.Get(ast.StringTerm("tools")); list != nil {
			for _, name := range t.constants(list) {
				if _, there := t.tools[name]; !there {
					t.unknown(name, r.rule.Loc())
				}
			}
		}
	}
	if !said || len(known) == 0 || !all {
		return
	}
	t.arguments(r, known)
	t.argumentValues(r, known)
	t.sums(r, known)
	t.versions(r, known)
	t.classes(r, known)
}

// counts warns of tools that do not exist, in the counters and the recent calls
// of the session.
func (t *toolLint) counts(rule *ast.Rule) {
	see := func(op *ast.Term, loc *ast.Location) {
		for _, name := range t.constants(op) {
			if _, there := t.tools[name]; !there {
				t.unknown(name, loc)
			}
		}
	}
	ast.WalkTerms(rule, func(term *ast.Term) bool {
		ref, ok := term.Value.(ast.Ref)
		for i := 1; ok && i < len(ref); i++ {
			if s := t.shapeOf(ast.NewTerm(ref[:i])); s != nil && s.path == "session.tools" {
				see(ref[i], orRule(term.Location, rule))
			}
		}
		return false
	})
	ast.WalkExprs(rule, func(e *ast.Expr) bool {
		loc, ops := orRule(e.Location, rule), e.Operands()
		switch name, _ := strings.CutPrefix(callName(e), libRef.String()+"."); name {
		case "ran", "ran_within", "failed_within", "sum_within", "recently":
			if t.modules.hasLib() {
				see(ops[0], loc)
			}
		case "happened", "before", "count", "sum", "sum_with":
			if t.modules.hasLib() && name != callName(e) {
				t.pastTools(name, ops, func(op *ast.Term) { see(op, loc) })
			}
		case "object.get":
			if path, ok := t.getPath(e); ok && len(path) > 0 {
				if s := t.shapeOf(ops[0]); s != nil && s.path == "session.tools" {
					see(path[0], loc)
				}
			}
		case "eq", "equal", "neq", "internal.member_2":
			for i, op := range ops {
				if s := t.shapeOf(op); s != nil && s.path == "session.recent[].tool" {
					see(ops[1-i], loc)
				}
			}
		}
		return false
	})
}

func (t *toolLint) unknown(name string, loc *ast.Location) {
	names := sortedKeys(t.tools)
	near := ""
	for _, other := range names {
		if sameWords(name, other) {
			near = other
		}
	}
	if near == "" {
		near = suggest.Name(name, names)
	}
	fix := "remit tools lists them, with --services also those of a file"
	if near != "" {
		fix = "did you mean " + near + "?"
	}
	if after, client := strings.CutPrefix(name, "mcp__"); client {
		t.warn(loc, "write "+quote(after), "no tool is named %q: remit names a tool of a server SERVER__TOOL, without mcp__", name)
	} else if t.closed || near != "" {
		t.warn(loc, fix, "no tool is named %q", name)
	}
}

// sameWords reports whether two names consist of the same words.
func sameWords(a, b string) bool {
	words := func(s string) []string { return slices.Sorted(slices.Values(strings.Split(s, "_"))) }
	return slices.Equal(words(a), words(b))
}

// arguments warns of arguments that none of the tools has.
func (t *toolLint) arguments(r setRule, tools []Tool) {
	has := func(of func(Tool) []string, arg string) bool {
		return slices.ContainsFunc(tools, func(tool Tool) bool { return tool.Args == nil || slices.Contains(of(tool), arg) })
	}
	told := map[string]bool{}
	check := func(path string, loc *ast.Location) {
		arg, _, _ := strings.Cut(path, ".")
		if told[arg] {
			return
		}
		told[arg] = true
		if arg == "*" || has(func(t Tool) []string { return t.Args }, arg) {
			return
		}
		t.warn(loc, fixName(arg, tools[0].Args), "%s has no argument %q", tools[0].Name, arg)
	}
	ast.WalkExprs(r.rule, func(e *ast.Expr) bool {
		if callName(e) == libRef.String()+".arg" && t.modules.hasLib() {
			for _, arg := range t.constants(e.Operand(0)) {
				check(arg, orRule(e.Location, r.rule))
			}
		}
		for _, term := range operandsOf(e) {
			s := t.shapeOf(term)
			if s == nil {
				continue
			}
			if inside, ok := strings.CutPrefix(s.path, "call.args."); ok {
				check(inside, orRule(e.Location, r.rule))
				t.leftOut(r, e, inside, tools)
			}
		}
		return false
	})
	if text, ok := r.rule.Head.Key.Value.(ast.String); ok && r.set == setRedact {
		if inside, ok := strings.CutPrefix(string(text), "/args/"); ok {
			check(strings.ReplaceAll(inside, "/", "."), r.rule.Loc())
		}
	}
}

// operandsOf returns the terms of a condition, without its operator.
func operandsOf(e *ast.Expr) []*ast.Term {
	if t, ok := e.Terms.(*ast.Term); ok {
		return []*ast.Term{t}
	}
	return e.Operands()
}

// leftOut warns of a restricting rule that compares an optional argument with
// false.
func (t *toolLint) leftOut(r setRule, e *ast.Expr, arg string, tools []Tool) {
	name := callName(e)
	if r.set == setAllow || e.Negated || name != "eq" && name != "equal" || !slices.Contains(tools[0].Missing, arg) {
		return
	}
	if slices.ContainsFunc(e.Operands(), func(op *ast.Term) bool { return ast.Boolean(false).Equal(op.Value) }) {
		t.warn(orRule(e.Location, r.rule), "write not input.call.args."+arg, "a call of %s may leave %s out, and then this does not hold", tools[0].Name, arg)
	}
}

// versions warns of versions that none of the tools has.
func (t *toolLint) versions(r setRule, tools []Tool) {
	ast.WalkExprs(r.rule, func(e *ast.Expr) bool {
		ops := operandsOf(e)
		for i, op := range ops {
			s := t.shapeOf(op)
			if s == nil || s.path != "tool.version" || len(ops) != 2 {
				continue
			}
			for _, version := range t.constants(ops[1-i]) {
				if !slices.ContainsFunc(tools, func(tool Tool) bool { return tool.Version == version }) {
					t.warn(orRule(e.Location, r.rule), "write "+quote(tools[0].Version), "%s is there in version %q, not %q", tools[0].Name, tools[0].Version, version)
				}
			}
		}
		return false
	})
}

// classes warns of effect classes that calls of the tools never have.
func (t *toolLint) classes(r setRule, tools []Tool) {
	classes, said := r.facts.of("call.effect_class")
	for _, tool := range tools {
		if len(tool.Classes) == 0 || overlap(tool.Classes, classes) {
			return
		}
	}
	if said {
		t.warn(factAt(r.facts, "call.effect_class", r.rule), "leave the condition out, or compare input.access.action",
			"this rule never fires: calls of %s are %s, never %s", tools[0].Name, alternatives(tools[0].Classes), alternatives(classes))
	}
}
