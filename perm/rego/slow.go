package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// SlowRules returns what slows decisions down: rules that OPA's interpreter
// evaluates for every request, because they are not compiled, and conditions
// that prevent caching.
func (e *Engine) SlowRules() []UncheckedRef {
	if e == nil || e.rules == nil {
		return nil
	}
	notes := append(e.rules.interpreted(), e.rules.queries[perm.PurposeRun].plan.notes...)
	notes = append(notes, e.slow...)
	slices.SortStableFunc(notes, func(a, b UncheckedRef) int { return strings.Compare(a.At, b.At) })
	return slices.Compact(e.modules.ownNotes(notes))
}

// interpreted returns the rules that topdown evaluates. A rule that reads nothing
// is not reported.
func (r *ruleset) interpreted() []UncheckedRef {
	var notes []UncheckedRef
	for _, rule := range r.notCompiled {
		n := r.numbers[rule]
		if asked(r.places[n].set, perm.PurposeRun) && len(readsOf(r.compiler, []*ast.Rule{rule})) > 0 {
			notes = append(notes, UncheckedRef{At: r.places[n].at, Text: "OPA's interpreter evaluates it for every request: " +
				"it has a form that is not compiled, such as with, every, else, walk or a set of variables"})
		}
	}
	return notes
}
