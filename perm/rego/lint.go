package rego

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// Warnings returns rules whose effect probably differs from the author's
// intent. They never fire, another rule always overrules them, no rule uses
// them, or a missing field disables them. Each warning has a position and a
// remedy. A policy with warnings decides.
func (e *Engine) Warnings() []Problem {
	return e.WarningsFor(nil, false)
}

// lint finds such rules in the compiled policy.
type lint struct {
	*scope
	modules *modules
	whole   *ast.Compiler
	input   *shape
	rules   []setRule // rules of the sets
	used    ruleRefs
	found   problems
}

// setRule is one rule of a set.
type setRule struct {
	set   string
	rule  *ast.Rule
	facts facts
	pack  bool
}

func (e *Engine) lint() (*lint, error) {
	c, err := e.modules.compile()
	if err != nil {
		return nil, err
	}
	input, err := inputShape()
	if err != nil {
		return nil, err
	}
	l := &lint{modules: e.modules, whole: c, input: input, scope: newScope(c, nil, input), used: usedNames(c)}
	for _, name := range e.modules.names {
		l.module(name)
		for _, rule := range c.Modules[name].Rules {
			if set := setOf(c.Modules[name], rule); set != "" {
				l.rules = append(l.rules, setRule{set: set, rule: rule, facts: l.facts(rule, maxHelpers), pack: e.modules.packs[name]})
			}
		}
	}
	return l, nil
}

// module resolves the variables of a module. One compiler names the variables
// of all modules, so that they share a table.
func (l *lint) module(name string) {
	ast.WalkExprs(l.compiler.Modules[name], func(e *ast.Expr) bool {
		l.learn(e)
		return false
	})
}

func (l *lint) warn(loc *ast.Location, fix, text string, args ...any) {
	l.found.add(spot(loc), fix, text, args...)
}

func (l *lint) all() {
	for _, r := range l.rules {
		if !r.pack {
			l.fires(r)
			if r.facts.never == nil && !l.overruled(r) {
				l.shadowed(r)
			}
			l.misused(r)
		}
	}
	for _, name := range l.modules.own() {
		for _, rule := range l.compiler.Modules[name].Rules {
			l.conditions(rule)
		}
		l.contradicts(l.compiler.Modules[name].Rules)
	}
	l.unused()
	l.labels()
}

// sorted returns the warnings, each once, by position.
func (l *lint) sorted() []Problem {
	slices.SortStableFunc(l.found, func(a, b Problem) int { return comparePlaces(a.At, b.At) })
	return slices.Compact(l.found)
}

// fires warns of a rule whose conditions exclude one another.
func (l *lint) fires(r setRule) {
	if r.facts.never != nil {
		l.warn(r.facts.never, "remove the rule, or the condition", "this rule of %s never fires: a condition of it is false", r.set)
		return
	}
	list := append(slices.Clone(r.facts.list), follows(r.set, r.facts)...)
	for i, a := range list {
		for _, b := range list[:i] {
			if a.path == b.path && a.values != nil && b.values != nil && !overlap(a.values, b.values) {
				l.excludes(r, a, b)
				return
			}
		}
	}
	if set := r.set; set == setHold {
		if classes, said := r.facts.of("call.effect_class"); said && slices.ContainsFunc(classes, func(c string) bool { return !canHold(c) }) {
			l.warn(factAt(r.facts, "call.effect_class", r.rule), `write {"deferrable", "pivot"}`, "hold of a call of class %s denies it: only deferrable and pivot calls can be held",
				alternatives(slices.DeleteFunc(slices.Clone(classes), canHold)))
		}
	}
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(v string) bool { return slices.Contains(b, v) })
}

func factAt(f facts, path string, rule *ast.Rule) *ast.Location {
	for _, one := range f.list {
		if one.path == path && one.at != nil {
			return one.at
		}
	}
	return rule.Loc()
}

// excludes reports which two conditions of a rule exclude one another.
func (l *lint) excludes(r setRule, a, b fact) {
	at, fix := r.rule.Loc(), cmp.Or(a.fix, b.fix, "remove one of the two conditions")
	for _, one := range []fact{b, a} {
		if one.at != nil && one.at.File == at.File && one.at.Row >= at.Row {
			at = one.at
		}
	}
	if a.own && b.own {
		all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(b.values), a.values...))))
		fix = "write input." + a.path + " in {" + strings.ReplaceAll(alternatives(all), " or ", ", ") + "}, or two rules"
	}
	l.warn(at, fix, "this rule of %s never fires: %s, and %s", r.set, b.why, a.why)
}

// overruled warns of a rule that never decides, because a denial always holds
// with it. It reports whether it did.
func (l *lint) overruled(r setRule) bool {
	if r.set == setDeny && r.facts.whole && len(r.facts.list) == 0 && len(r.rule.Head.Key.Vars()) == 0 {
		l.warn(r.rule.Loc(), "give it a condition, or remove it: what nothing allows is denied anyway", "this rule denies every call, and no rule that allows wins over it")
		return true
	}
	if r.set != setAllow && r.set != setAsk && r.set != setHold {
		return false
	}
	for _, d := range l.rules {
		if d.set == setDeny && len(d.facts.list) > 0 && d.facts.whole && d.facts.never == nil && covers(d.facts, r.facts) {
			l.warn(r.rule.Loc(), "write the exception into that rule", "this rule of %s decides nothing: wherever it holds, the deny at %s holds too, and deny wins", r.set, at(d.rule.Loc()))
			return true
		}
	}
	return false
}

// covers reports whether the conditions of a hold in every case in which b
// holds.
func covers(a, b facts) bool {
	for _, one := range a.list {
		if one.values == nil {
			if !b.has(one.path) {
				return false
			}
			continue
		}
		values, said := b.of(one.path)
		if !said || slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(one.values, v) }) {
			return false
		}
	}
	return true
}

// misused warns of elements that a set accepts, but that do not do what the
// author probably intends.
func (l *lint) misused(r setRule) {
	if object, ok := r.rule.Head.Key.Value.(ast.Object); ok && r.set == setLimit {
		l.budget(r, object)
	}
	if text, ok := r.rule.Head.Key.Value.(ast.String); ok && r.set == setMask {
		after, _ := strings.CutPrefix(string(text), "file://")
		if name, _, _ := strings.Cut(after, "/"); nearWorkspace(name) {
			l.warn(r.rule.Loc(), "did you mean workspace?", "this mask is about the root %q, which is nearly workspace", name)
		}
	}
}

// periods are words in names of budgets, and the windows that they suggest.
var periods = []struct{ word, window string }{{"day", "24h"}, {"daily", "24h"}, {"hour", "1h"}, {"hourly", "1h"}, {"minute", "1m"}}

func (l *lint) budget(r setRule, object ast.Object) {
	l.afterwards(r, object)
	name, _ := plainOf(object, "budget")
	if _, said := plainOf(object, "window"); said {
		return
	}
	for _, p := range periods {
		if slices.Contains(strings.Fields(strings.ToLower(name)), p.word) {
			l.warn(r.rule.Loc(), `write "window": "`+p.window+`"`, "the budget %q has no window: it counts the whole session", name)
			return
		}
	}
}

// afterwards warns of a budget of the principal that a program reaches only
// with its changes. The start of the call already counts against it, so the
// changes are denied.
func (l *lint) afterwards(r setRule, object ast.Object) {
	per, _ := plainOf(object, "per")
	actions, said := r.facts.of("access.action")
	before := func(action string) bool { return action == "execute" || action == "call" }
	changes := func(action string) bool { return action == "write" || action == "delete" }
	if per != perm.PerPrincipal || !said || slices.ContainsFunc(actions, before) || !slices.ContainsFunc(actions, changes) || r.facts.has("tool.name") || r.facts.has("tool.confinement") {
		return
	}
	l.warn(factAt(r.facts, "access.action", r.rule), `let the rule hold for the call too, with "execute" beside `+alternatives(actions)+`, or name the tools: input.tool.name`,
		"this budget per principal denies what a program changes: the rule gives it only once the program has run")
}

func plainOf(object ast.Object, key string) (string, bool) {
	value := object.Get(ast.StringTerm(key))
	if value == nil {
		return "", false
	}
	return plain(value.Value), true
}

// labels warns of a label that a condition spells differently from the rule
// that adds it.
func (l *lint) labels() {
	given := map[string]string{}
	for _, r := range l.rules {
		if text, ok := r.rule.Head.Key.Value.(ast.String); ok && r.set == setLabel {
			given[string(text)] = at(r.rule.Loc())
		}
	}
	squeezed := strings.NewReplacer("-", "", "_", "", " ", "")
	for _, name := range l.modules.own() {
		ast.WalkExprs(l.compiler.Modules[name], func(e *ast.Expr) bool {
			if callName(e) != "internal.member_2" {
				return false
			}
			list, asked := l.shapeOf(e.Operand(1)), l.constants(e.Operand(0))
			if list == nil || list.path != "session.labels" || len(asked) != 1 || given[asked[0]] != "" {
				return false
			}
			for text, where := range given {
				if strings.EqualFold(squeezed.Replace(text), squeezed.Replace(asked[0])) {
					l.warn(e.Location, "write "+quote(text), "no rule gives the label %q; the one at %s gives %q", asked[0], where, text)
				}
			}
			return false
		})
	}
}

// unused warns of helpers in package remit that no rule and no test uses.
func (l *lint) unused() {
	used := ruleRefs{names: maps.Clone(l.used.names), wholes: slices.Clone(l.used.wholes)}
	for _, mod := range l.modules.tests {
		ast.WalkRefs(mod, func(ref ast.Ref) bool {
			if name, ok := ref[0].Value.(ast.Var); ok {
				used.names["remit."+string(name)] = true
			}
			used.add(ref)
			return false
		})
	}
	told := map[string]bool{}
	for _, name := range l.modules.own() {
		mod := l.modules.parsed[name]
		for _, rule := range mod.Rules {
			if inRemit(mod) && !isSet(headName(rule)) && !used.has(mod, headName(rule)) && !told[headName(rule)] {
				told[headName(rule)] = true
				l.warn(rule.Loc(), l.fixUnused(headName(rule)), "no rule uses %s", headName(rule))
			}
		}
	}
	for _, name := range sortedKeys(l.modules.tests) {
		for _, rule := range l.modules.tests[name].Rules {
			l.testOfSet(l.modules.tests[name], rule)
			if misnamedTest(headName(rule)) {
				l.warn(rule.Loc(), "did you mean test_"+headName(rule)[5:]+"?", "%s is no test: the name of a test begins with test_", headName(rule))
			}
		}
	}
}

func misnamedTest(name string) bool {
	letters := []byte(strings.ToLower(name[:min(4, len(name))]))
	slices.Sort(letters)
	return len(name) > 5 && name[4] == '_' && string(letters) == "estt" && !strings.HasPrefix(name, "test_")
}

func (*lint) fixUnused(name string) string {
	fix := "use it in a rule, or remove it"
	if near := fixName(name, setNames()); strings.HasPrefix(near, "did you mean") {
		return near + " " + fix
	}
	return fix
}
