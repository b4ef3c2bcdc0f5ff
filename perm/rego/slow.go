package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// SlowRules returns what slows decisions down. These are rules that every
// request evaluates, because no condition lets the index skip them, and
// conditions that prevent caching.
func (e *Engine) SlowRules() []UncheckedRef {
	if e == nil || e.rules == nil {
		return nil
	}
	notes := append(e.rules.unindexed(), e.rules.queries[perm.PurposeRun].plan.notes...)
	notes = append(notes, e.slow...)
	slices.SortStableFunc(notes, func(a, b UncheckedRef) int { return strings.Compare(a.At, b.At) })
	return slices.Compact(e.modules.ownNotes(notes))
}

// unindexed returns the rules that the index selects for every input. It
// queries the index with an input that has every field, but no value that a
// rule names. A rule that reads nothing is not reported.
func (r *ruleset) unindexed() []UncheckedRef {
	var notes []UncheckedRef
	for _, set := range setNames() {
		index := r.compiler.RuleIndex(setRef(set))
		if index == nil || !asked(set, perm.PurposeRun) {
			continue
		}
		found, err := index.Lookup(unknownResolver{})
		if err != nil {
			continue // only advice
		}
		for _, rule := range found.Rules {
			if n, ours := r.numbers[rule]; ours && len(readsOf(r.compiler, []*ast.Rule{rule})) > 0 {
				notes = append(notes, UncheckedRef{At: r.places[n].at, Text: "evaluated for every request: " +
					"no condition compares a field of input with a constant in a way that the index of rules sees " +
					"(==, in, startswith, endswith, glob.match)"})
			}
		}
	}
	return notes
}

// unknownResolver resolves every reference to a value that no policy names.
type unknownResolver struct{}

func (unknownResolver) Resolve(ast.Ref) (ast.Value, error) {
	return ast.String("\x00\x00unheard of\x00\x00"), nil
}
