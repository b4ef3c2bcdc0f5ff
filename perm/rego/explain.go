package rego

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/remit-dev/remit/perm"
)

// Explanation describes how a decision was made.
type Explanation struct {
	Decision perm.DecisionRecord `json:"decision"`
	Rules    []RuleTrace         `json:"rules"` // rules of the queried sets, set by set, in source order
}

// The outcome of a rule.
const (
	RuleMatched = "matched" // the rule held and added its reasons
	RuleFailed  = "failed"  // a condition was evaluated and did not hold
)

// RuleTrace is the trace of one rule.
type RuleTrace struct {
	Set     string      `json:"set"`
	At      string      `json:"at"`
	Outcome string      `json:"outcome"`           // RuleMatched or RuleFailed
	Texts   []string    `json:"texts,omitempty"`   // texts that the rule added
	Decided bool        `json:"decided,omitempty"` // its reasons are those of the decision
	Stopped string      `json:"stopped,omitempty"` // file:line of the furthest condition that did not hold
	Inputs  []InputRead `json:"saw,omitempty"`     // input paths that the rule can read, directly and through other rules
}

// InputRead is an input path and its value. An empty Value means that the input
// has no such path.
type InputRead struct {
	Path  string          `json:"path"` // such as input.call.args.path
	Value json.RawMessage `json:"value,omitempty"`
}

// Explain decides as Decide does, without the cache, and returns the trace of
// each rule. The result repeats arguments of the call, which can be private.
func (e *Engine) Explain(ctx context.Context, r perm.Request) (Explanation, error) {
	if e == nil || e.rules == nil {
		return Explanation{Decision: noPolicy().Record()}, nil
	}
	x, err := e.explain(ctx, r.Filled())
	if err != nil {
		return Explanation{Decision: e.refusal(err).Record()}, err
	}
	return x, nil
}

func (e *Engine) explain(ctx context.Context, r perm.Request) (Explanation, error) {
	if ctx.Err() != nil {
		return Explanation{}, cancelled(ctx)
	}
	s := newState(&e.keys, e.parts, &r)
	defer s.release()
	input, err := s.checkedInput(newPlan(e.parts, []read{{}}))
	if err != nil {
		return Explanation{}, err
	}
	t := &tracer{numbers: e.plain.numbers, queries: map[uint64]int{}, entered: map[int]bool{}, stopped: map[int]*ast.Location{}}
	got, err := e.evaluate(withHistory(ctx, &r.Session), e.plain, e.plain.query(r.Purpose).body, input, t)
	if err != nil {
		return Explanation{}, err
	}
	effect, details := got.compose(&r, e.rules.bad)
	details.Revision = e.revision
	x := Explanation{Decision: perm.NewDecision(effect, details).Record()}
	for _, set := range setNames() {
		if asked(set, r.Purpose) {
			x.Rules = append(x.Rules, e.ruleTraces(set, got[set], input, t, details.Reasons)...)
		}
	}
	return x, nil
}

// ruleTraces returns the traces of the rules of one set.
func (e *Engine) ruleTraces(set string, got []element, input *ast.Term, t *tracer, reasons []perm.Reason) []RuleTrace {
	rules := e.plain.rulesOf(set)
	slices.SortFunc(rules, func(a, b *ast.Rule) int { return cmp.Compare(e.plain.numbers[a], e.plain.numbers[b]) })
	list := make([]RuleTrace, 0, len(rules))
	for _, rule := range rules {
		n := e.plain.numbers[rule]
		c := RuleTrace{Set: set, At: e.plain.places[n].at, Outcome: RuleFailed, Inputs: inputReads(input, readsOf(e.plain.compiler, []*ast.Rule{rule}))}
		for _, given := range got {
			if given.rule == n {
				c.Texts = append(c.Texts, given.text)
			}
		}
		switch {
		case len(c.Texts) > 0:
			c.Outcome = RuleMatched
			c.Decided = slices.ContainsFunc(reasons, func(r perm.Reason) bool { return r.Set == set && r.At == c.At })
		case t.entered[n]:
			c.Stopped = at(t.stopped[n])
		}
		list = append(list, c)
	}
	return list
}

// inputReads returns the values of the paths that are read, each path once.
func inputReads(input *ast.Term, reads []read) []InputRead {
	paths := make([][]string, 0, len(reads))
	for _, r := range reads {
		paths = append(paths, r.path)
	}
	slices.SortFunc(paths, slices.Compare[[]string])
	var out []InputRead
	for _, path := range slices.CompactFunc(paths, slices.Equal[[]string]) {
		s := InputRead{Path: strings.Join(append([]string{"input"}, path...), ".")}
		ref := make(ast.Ref, len(path))
		for i, name := range path {
			ref[i] = ast.StringTerm(name)
		}
		if value, err := input.Value.Find(ref); err == nil {
			s.Value = toJSON(value)
		}
		out = append(out, s)
	}
	return out
}

// toJSON returns the JSON of a value of the input, which came from JSON.
func toJSON(value ast.Value) json.RawMessage {
	plain, err := ast.JSON(value)
	if err != nil {
		return nil
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return nil
	}
	return text
}

// tracer follows an evaluation and records the outcome of the rules of sets.
type tracer struct {
	numbers map[*ast.Rule]int
	queries map[uint64]int // evaluation of a body -> its rule
	entered map[int]bool
	stopped map[int]*ast.Location
}

func (*tracer) Enabled() bool               { return true }
func (*tracer) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

func (t *tracer) TraceEvent(e topdown.Event) {
	switch node := e.Node.(type) {
	case *ast.Rule:
		if n, ours := t.numbers[node]; ours && e.Op == topdown.EnterOp {
			t.queries[e.QueryID], t.entered[n] = n, true
		}
	case *ast.Expr:
		n, ours := t.queries[e.QueryID]
		if !ours || e.Op != topdown.FailOp || node.Location == nil {
			return
		}
		if last := t.stopped[n]; last == nil || node.Location.Compare(last) > 0 {
			t.stopped[n] = node.Location
		}
	}
}
