package rego

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

// Document exports the input document of a request to tests.
func Document(r perm.Request) (ast.Value, error) {
	k, list := newKeys(), parts()
	term, err := newState(&k, list, &r).checkedInput(newPlan(list, []read{{}}))
	if err != nil {
		return nil, err
	}
	return term.Value, nil
}

// PastBuiltins exports the built-ins about earlier calls to tests.
func PastBuiltins() []*tester.Builtin { return pastTestBuiltins() }

// SetNames exports the names of the sets to tests.
func SetNames() []string { return setNames() }

// Capabilities exports the available built-ins to tests.
func Capabilities() *ast.Capabilities { return capabilities() }

// TakeSlots takes all evaluation slots of an engine.
func TakeSlots(e *Engine) (release func()) {
	for range 2 * runtime.GOMAXPROCS(0) {
		e.slots <- struct{}{}
	}
	return func() {
		for range cap(e.slots) {
			<-e.slots
		}
	}
}

// DecideWhole decides with the whole document and without the cache.
func DecideWhole(ctx context.Context, e *Engine, r perm.Request) (perm.Decision, error) {
	s := newState(&e.keys, e.parts, &r)
	if _, err := s.checkedInput(newPlan(e.parts, []read{{}})); err != nil {
		return perm.Decision{}, err
	}
	return e.fresh(ctx, query{body: e.rules.query(s.request.Purpose).body, plan: s.plan}, s)
}

// Remembered returns the number of cached decisions of an engine.
func Remembered(e *Engine) int { return e.cache.decisions.Len() }

// DropFromKey removes one part from the keys of every purpose. It reports
// whether the part existed, and whether the engine caches decisions.
func DropFromKey(e *Engine, part int) (dropped, remembers bool) {
	q := e.rules.queries[perm.PurposeRun]
	if part >= len(q.plan.key) {
		return false, len(q.plan.notes) == 0
	}
	q.plan.key = slices.Delete(q.plan.key, part, part+1)
	return true, len(q.plan.notes) == 0
}

// Reads returns the input paths that the rules read with purpose run.
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

// Member exports the search for one member of a JSON text to tests.
func Member(text string, path []string) ([]byte, error) { return member([]byte(text), path) }

// DecidePlain decides with the rules before the expansion of tables, with the
// whole document and without the cache.
func DecidePlain(ctx context.Context, e *Engine, r perm.Request) (perm.Decision, error) {
	plain := &Engine{rules: e.plain, plain: e.plain, modules: e.modules, keys: e.keys, parts: e.parts, steps: e.steps, deadline: e.deadline, revision: e.revision}
	return DecideWhole(ctx, plain, r)
}

// Rules returns the number of rules of a set, as written and as evaluated.
func Rules(e *Engine, set string) (written, evaluated int) {
	return len(e.plain.rulesOf(set)), len(e.rules.rulesOf(set))
}

// Within returns e as if the bound on expanded rows were rows.
func Within(e *Engine, rows int) *Engine {
	less := *e
	less.rules, less.slow = e.plain.specialised(e.modules, e.parts, rows)
	return &less
}

// CompiledAnswer reports whether compiled rules answer a request, and whether
// they are all rules.
func CompiledAnswer(e *Engine, r perm.Request) (sure, all bool) {
	s := newState(&e.keys, e.parts, &r)
	q := e.rules.query(s.request.Purpose)
	if _, err := s.checkedInput(q.plan); err != nil || q.compiled == nil {
		return false, false
	}
	_, sure = q.compiled.ask(s)
	return sure, len(q.restBody) == 0
}

// ConstantSteps returns the steps that a load of a policy spends on the values of helpers.
func ConstantSteps(t *testing.T, text string) int {
	t.Helper()
	e, err := New(Options{Modules: map[string]string{"p.rego": text}})
	require.NoError(t, err)
	h := newHelpers(e.plain, e.parts)
	for rule := range e.plain.numbers {
		h.compileRule(rule)
	}
	return allConstantSteps - h.left
}
