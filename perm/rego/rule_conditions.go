package rego

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm/rego/internal/rulecond"
)

// RuleConditions is what a rule of a set compares, as far as its text tells. It
// guides a search of inputs and decides nothing.
type RuleConditions struct {
	Set, At string
	// Alternatives are lists of conditions. If each condition of one holds, the
	// rule can hold.
	Alternatives [][]Condition
	Reads        [][]string // input paths that the rule can read, directly and through other rules
	Constants    []any      // constants of the rule and of the rules that it uses: texts and numbers
	Text         string     // source of the rule
}

// Condition compares a place of the input.
type Condition = rulecond.Condition

// Conditions returns the conditions of each rule of a set, in source order.
func (e *Engine) Conditions() []RuleConditions {
	if e == nil || e.plain == nil {
		return nil
	}
	rules := make([]*ast.Rule, len(e.plain.places))
	for rule, n := range e.plain.numbers {
		rules[n] = rule
	}
	f := rulecond.New(e.plain.compiler, e.data)
	all := make([]RuleConditions, len(rules))
	for n, rule := range rules {
		of := RuleConditions{Set: e.plain.places[n].set, At: e.plain.places[n].at, Alternatives: f.Of(rule), Text: string(rule.Loc().Text)}
		r := newReader(e.plain.compiler)
		for _, one := range r.all([]*ast.Rule{rule}) {
			of.Reads = append(of.Reads, one.path)
		}
		for used := range r.seen {
			of.Constants = constantsOf(of.Constants, used)
		}
		slices.SortFunc(of.Constants, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		all[n] = of
	}
	return all
}

// constantsOf adds the texts and numbers of a rule, each once.
func constantsOf(all []any, rule *ast.Rule) []any {
	ast.WalkTerms(rule.Body, func(t *ast.Term) bool {
		var v any
		switch x := t.Value.(type) {
		case ast.String:
			v = string(x)
		case ast.Number:
			v, _ = json.Number(x).Float64()
		case ast.Ref:
			return true // names
		default:
			return false
		}
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
		return false
	})
	return all
}
