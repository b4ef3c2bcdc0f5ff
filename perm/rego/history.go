package rego

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/remit-dev/remit/history"
	"github.com/remit-dev/remit/internal/pastcall"
	"github.com/remit-dev/remit/perm"
)

// The built-ins of data.remit.lib about earlier calls. Their first operand is
// the list of a test, or null: then the history of the request answers.
const (
	pastCount  = "remit.past_count"
	pastBefore = "remit.past_before"
	pastSum    = "remit.past_sum"
)

// historyKey is the key of a context for the history of the request.
type historyKey struct{}

func withHistory(ctx context.Context, s *perm.SessionFacts) context.Context {
	var source history.Source = pastcall.Unknown{}
	switch {
	case s.Past != nil:
		source = s.Past
	case s.History != nil:
		source = pastcall.List(s.History)
	}
	return context.WithValue(ctx, historyKey{}, source)
}

// history builds the list of a request that has one.
func (d *document) history(r *perm.Request) *ast.Term {
	if r.Session.History == nil {
		return nil
	}
	terms := make([]*ast.Term, len(r.Session.History))
	for i, c := range r.Session.History {
		f := []field{d.text(kTool, c.Tool), {ast.StringTerm("outcome"), ast.StringTerm(c.Outcome)}}
		if c.Effect != "" {
			f = append(f, field{ast.StringTerm("effect"), ast.StringTerm(c.Effect)})
		}
		if c.Resources != nil {
			f = append(f, field{ast.StringTerm("resources"), d.list(c.Resources)})
		}
		if len(c.Args) > 0 {
			f = append(f, field{ast.StringTerm("args"), d.raw(c.Args)})
		}
		if !c.At.IsZero() {
			f = append(f, field{ast.StringTerm("at"), ast.StringTerm(c.At.Format(time.RFC3339Nano))})
		}
		terms[i] = d.object(f...)
	}
	return ast.ArrayTerm(terms...)
}

// pastBuiltins returns the built-ins with their types.
func pastBuiltins() []*topdown.Builtin {
	return []*topdown.Builtin{
		{Decl: &ast.Builtin{Name: pastCount, Decl: types.NewFunction(types.Args(types.A, types.A, types.A, types.A), types.N)}, Func: countPast},
		{Decl: &ast.Builtin{Name: pastBefore, Decl: types.NewFunction(types.Args(types.A, types.A, types.A), types.B)}, Func: beforePast},
		{Decl: &ast.Builtin{Name: pastSum, Decl: types.NewFunction(types.Args(types.A, types.A, types.A, types.A, types.A, types.A), types.N)}, Func: sumPast},
	}
}

func pastFunctions() map[string]*topdown.Builtin {
	all := map[string]*topdown.Builtin{}
	for _, b := range pastBuiltins() {
		all[b.Decl.Name] = b
	}
	return all
}

// pastTestBuiltins returns the built-ins for OPA's runner of tests.
func pastTestBuiltins() (all []*tester.Builtin) {
	for _, b := range pastBuiltins() {
		f := b.Func
		all = append(all, &tester.Builtin{Decl: b.Decl, Func: rego.FunctionDyn(
			&rego.Function{Name: b.Decl.Name, Decl: b.Decl.Decl},
			func(bctx rego.BuiltinContext, ops []*ast.Term) (result *ast.Term, err error) {
				err = f(bctx, ops, func(t *ast.Term) error {
					result = t
					return nil
				})
				return result, err
			},
		)})
	}
	return all
}

// countPast has the operands list, pattern, window and time.
func countPast(bctx topdown.BuiltinContext, ops []*ast.Term, iter func(*ast.Term) error) error {
	q, err := pastQuery(ops[1], ops[2], ops[3])
	if err != nil {
		return pastError(bctx, pastCount, err)
	}
	answer, err := findPast(bctx, ops[0], q)
	if err != nil {
		return pastError(bctx, pastCount, err)
	}
	return iter(ast.InternedTerm(answer.Count))
}

// beforePast has the operands list and two patterns.
func beforePast(bctx topdown.BuiltinContext, ops []*ast.Term, iter func(*ast.Term) error) error {
	var last [2]int
	for i, pattern := range ops[1:] {
		q, err := callPattern(pattern)
		if err != nil {
			return pastError(bctx, pastBefore, err)
		}
		answer, err := findPast(bctx, ops[0], q)
		if err != nil {
			return pastError(bctx, pastBefore, err)
		}
		last[i] = answer.Last
	}
	return iter(ast.InternedTerm(last[0] > 0 && last[0] < last[1]))
}

// sumPast has the operands list, pattern, pointer, window, time, and the
// arguments of the call itself, or null: then they are not in the sum.
func sumPast(bctx topdown.BuiltinContext, ops []*ast.Term, iter func(*ast.Term) error) error {
	n, err := pastAmount(bctx, ops)
	if err != nil {
		return pastError(bctx, pastSum, err)
	}
	return iter(ast.NumberTerm(n))
}

func pastAmount(bctx topdown.BuiltinContext, ops []*ast.Term) (json.Number, error) {
	q, err := pastQuery(ops[1], ops[3], ops[4])
	if err != nil {
		return "", err
	}
	if q.Sum, err = callArgument(ops[2]); err != nil {
		return "", err
	}
	answer, err := findPast(bctx, ops[0], q)
	if err != nil || ops[5].Value.Compare(ast.NullValue) == 0 {
		return answer.Sum, err
	}
	own, err := ast.JSON(ops[5].Value)
	if err == nil {
		answer.Sum, err = pastcall.Plus(answer.Sum, own, q.Sum)
	}
	return answer.Sum, err
}

func callArgument(t *ast.Term) (string, error) {
	text, _ := t.Value.(ast.String)
	return string(text), pastcall.CheckPointer(string(text))
}

// pastError ends the evaluation, so that the call is denied. Another error of a
// built-in does not end the evaluation of a test.
func pastError(bctx topdown.BuiltinContext, name string, err error) error {
	return topdown.Halt{Err: &topdown.Error{Code: topdown.BuiltinErr, Location: bctx.Location, Message: name + ": " + err.Error()}}
}

// findPast asks the list, or the history of the request.
func findPast(bctx topdown.BuiltinContext, list *ast.Term, q history.Query) (history.Answer, error) {
	if list.Value.Compare(ast.NullValue) == 0 {
		source, _ := bctx.Context.Value(historyKey{}).(history.Source)
		if source == nil {
			source = pastcall.Unknown{}
		}
		return source.Find(q)
	}
	var calls pastcall.List
	if err := ast.As(list.Value, &calls); err != nil {
		return history.Answer{}, errors.New("input.session.history must be a list of calls")
	}
	return calls.Find(q)
}

// callPattern parses the pattern of an operand. Its errors name no value.
func callPattern(t *ast.Term) (q history.Query, err error) {
	object, ok := t.Value.(ast.Object)
	if !ok {
		return q, errors.New("a pattern of calls must be an object")
	}
	members := map[string]*string{"tool": &q.Tool, "effect": &q.Effect, "resource": &q.Resource, "outcome": &q.Outcome}
	err = object.Iter(func(k, v *ast.Term) error {
		name, isText := k.Value.(ast.String)
		value, isValue := v.Value.(ast.String)
		switch member := members[string(name)]; {
		case !isText || !isValue:
			return errors.New("the members of a pattern must be texts")
		case member == nil:
			return fmt.Errorf("the pattern has no member %s; valid are tool, effect, resource, outcome", string(name))
		case value == "":
			return fmt.Errorf("%s of the pattern is empty; leave it out", string(name))
		default:
			*member = string(value)
			return nil
		}
	})
	return q, err
}

// pastQuery parses a pattern and a window.
func pastQuery(pattern, window, at *ast.Term) (q history.Query, err error) {
	if q, err = callPattern(pattern); err != nil {
		return q, err
	}
	q.Window, q.Now, err = callWindow(window, at)
	return q, err
}

func callWindow(window, at *ast.Term) (text string, now time.Time, err error) {
	given, ok := window.Value.(ast.String)
	if !ok {
		return "", now, errors.New("a window must be a text, such as 10m")
	}
	w, err := pastcall.ParseWindow(string(given))
	if err != nil || w.Span == 0 {
		return string(given), now, err
	}
	clock, _ := at.Value.(ast.String)
	if now, err = time.Parse(time.RFC3339Nano, string(clock)); err != nil {
		return "", now, errors.New("a window of time needs input.time")
	}
	return string(given), now, nil
}

// pastCall checks the constants that a rule gives to a function about earlier
// calls.
func (f *fieldCheck) pastCall(function string, ops []*ast.Term, loc *ast.Location) {
	check := func(at int, fix string, fails func(*ast.Term) error) {
		if at >= len(ops) {
			return
		}
		if t := f.follow(ops[at]); t.IsGround() && !hasRefs(t) {
			if err := fails(t); err != nil {
				f.found.add(spot(loc), fix, "lib.%s: %s", function, err.Error())
			}
		}
	}
	pattern := func(at int) {
		check(at, `write a pattern such as {"tool": "mail_*", "outcome": "done"}`, func(t *ast.Term) error {
			q, err := callPattern(t)
			if err == nil {
				_, err = pastcall.Parse(q)
			}
			return err
		})
	}
	window := func(at int) {
		check(at, `write a window such as "10m", "24h" or "20"`, func(t *ast.Term) error {
			_, _, err := callWindow(t, ast.StringTerm("2026-01-02T03:04:05Z"))
			return err
		})
	}
	switch function {
	case "happened":
		pattern(0)
	case "before":
		pattern(0)
		pattern(1)
	case "count":
		pattern(0)
		window(1)
	case "sum", "sum_with":
		pattern(0)
		check(1, `write the JSON pointer of an argument, such as "/amount"`, func(t *ast.Term) error {
			_, err := callArgument(t)
			return err
		})
		window(2)
	}
}

// hasRefs reports whether the value of a term is known only when a request is
// decided.
func hasRefs(t *ast.Term) (found bool) {
	ast.WalkTerms(t, func(t *ast.Term) bool {
		switch t.Value.(type) {
		case ast.Ref, ast.Call:
			found = true
		}
		return found
	})
	return found
}

// pastRead refuses a rule that reads the list of earlier calls itself: the
// runtime has none, so the rule would find nothing.
func (f *fieldCheck) pastRead(ref ast.Ref, loc *ast.Location) {
	if ref.HasPrefix(pastRef) && !f.isLib {
		f.found.add(spot(loc), "use happened, before, count or sum of data.remit.lib", "input.session.history is a list only in tests")
	}
}

var pastRef = ast.MustParseRef("input.session.history")
