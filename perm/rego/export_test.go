package rego

import (
	"context"
	"runtime"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// Document shows tests the input document of a request.
func Document(r perm.Request) (ast.Value, error) {
	k, list := newKeys(), parts()
	r = r.Filled()
	all := newPlan(list, []read{{}})
	if err := check(list, all, &r); err != nil {
		return nil, err
	}
	term, err := all.document(&k, &r)
	if err != nil {
		return nil, err
	}
	return term.Value, nil
}

// SetNames shows tests the names of the sets.
func SetNames() []string { return setNames() }

// Capabilities shows tests which built-ins are left.
func Capabilities() *ast.Capabilities { return capabilities() }

// TakeTurns takes all turns of an engine, of which there are as many as its processors can do.
func TakeTurns(e *Engine) (release func()) {
	for range 2 * runtime.GOMAXPROCS(0) {
		e.turns <- struct{}{}
	}
	return func() {
		for range cap(e.turns) {
			<-e.turns
		}
	}
}

// DecideWhole decides with the whole document and without a memo.
func DecideWhole(ctx context.Context, e *Engine, r perm.Request) (perm.Decision, error) {
	r = r.Filled()
	all := newPlan(e.parts, []read{{}})
	if err := check(e.parts, all, &r); err != nil {
		return perm.Decision{}, err
	}
	return e.fresh(ctx, query{body: e.rules.query(r.Purpose).body, plan: all}, r)
}

// Remembered tells how many decisions an engine remembers.
func Remembered(e *Engine) int { return e.memo.decisions.Len() }

// DropFromKey takes one part out of the keys of every purpose. It reports
// whether there was one, and whether the engine remembers anything.
func DropFromKey(e *Engine, part int) (dropped, remembers bool) {
	q := e.rules.queries[perm.PurposeRun]
	if part >= len(q.plan.key) {
		return false, len(q.plan.notes) == 0
	}
	q.plan.key = slices.Delete(q.plan.key, part, part+1)
	return true, len(q.plan.notes) == 0
}

// Reads lists the paths of the input that the rules asked to run a call read.
func Reads(e *Engine) []string {
	var rules []*ast.Rule
	for _, set := range setNames() {
		if asked(set, perm.PurposeRun) {
			rules = append(rules, e.rules.rulesOf(set)...)
		}
	}
	var out []string
	for _, r := range readsOf(e.rules.compiler, rules) {
		out = append(out, strings.Join(append([]string{"input"}, r.path...), "."))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Member shows tests how one member of a JSON text is found.
func Member(text string, path []string) ([]byte, error) { return member([]byte(text), path) }

// DecidePlain decides with the rules as they were before tables became rules,
// with the whole document and without a memo.
func DecidePlain(ctx context.Context, e *Engine, r perm.Request) (perm.Decision, error) {
	plain := &Engine{rules: e.plain, plain: e.plain, modules: e.modules, keys: e.keys, parts: e.parts, steps: e.steps, deadline: e.deadline, revision: e.revision}
	return DecideWhole(ctx, plain, r)
}

// Rules tells how many rules there are for a set, as written and as evaluated.
func Rules(e *Engine, set string) (written, evaluated int) {
	return len(e.plain.rulesOf(set)), len(e.rules.rulesOf(set))
}

// Within returns e as it would be if only so many rows became rules.
func Within(e *Engine, rows int) *Engine {
	less := *e
	less.rules, less.slow = e.plain.specialised(e.modules, e.parts, rows)
	return &less
}
