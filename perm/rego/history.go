package rego

import (
	"context"
	"errors"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/remit-dev/remit/perm"
)

// The built-ins of data.remit.lib about earlier calls. Their first operand is
// the list of a test, or null: then the history of the request answers.
const (
	pastCount  = "remit.past_count"
	pastBefore = "remit.past_before"
)

// historyKey is the key of a context for the history of the request.
type historyKey struct{}

func withHistory(ctx context.Context, h perm.History) context.Context {
	return context.WithValue(ctx, historyKey{}, h)
}

// history builds the list of a request that has one.
func (d *document) history(r *perm.Request) *ast.Term {
	list := r.Session.History.List()
	if list == nil {
		return nil
	}
	terms := make([]*ast.Term, len(list))
	for i, c := range list {
		f := []field{d.text(kTool, c.Tool), {ast.StringTerm("outcome"), ast.StringTerm(c.Outcome)}}
		if c.Effect != "" {
			f = append(f, field{ast.StringTerm("effect"), ast.StringTerm(c.Effect)})
		}
		if c.Resources != nil {
			f = append(f, field{ast.StringTerm("resources"), d.list(c.Resources)})
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

func countPast(bctx topdown.BuiltinContext, ops []*ast.Term, iter func(*ast.Term) error) error {
	n, err := func() (int, error) {
		source, err := sourceOf(bctx, ops[0])
		if err != nil {
			return 0, err
		}
		p, err := callPattern(ops[1])
		if err != nil {
			return 0, err
		}
		w, now, err := callWindow(ops[2], ops[3])
		if err != nil {
			return 0, err
		}
		return source.Count(p, w, now)
	}()
	if err != nil {
		return pastError(bctx, pastCount, err)
	}
	return iter(ast.InternedTerm(n))
}

func beforePast(bctx topdown.BuiltinContext, ops []*ast.Term, iter func(*ast.Term) error) error {
	is, err := func() (bool, error) {
		source, err := sourceOf(bctx, ops[0])
		if err != nil {
			return false, err
		}
		a, err := callPattern(ops[1])
		if err != nil {
			return false, err
		}
		b, err := callPattern(ops[2])
		if err != nil {
			return false, err
		}
		return source.Before(a, b)
	}()
	if err != nil {
		return pastError(bctx, pastBefore, err)
	}
	return iter(ast.InternedTerm(is))
}

// pastError ends the evaluation, so that the call is denied. Another error of a
// built-in does not end the evaluation of a test.
func pastError(bctx topdown.BuiltinContext, name string, err error) error {
	return topdown.Halt{Err: &topdown.Error{Code: topdown.BuiltinErr, Location: bctx.Location, Message: name + ": " + err.Error()}}
}

// sourceOf returns what answers: the list, or the history of the request.
func sourceOf(bctx topdown.BuiltinContext, list *ast.Term) (perm.HistorySource, error) {
	if _, null := list.Value.(ast.Null); null {
		var h perm.History
		if bctx.Context != nil {
			h, _ = bctx.Context.Value(historyKey{}).(perm.History)
		}
		return h.Source(), nil
	}
	var h perm.History
	if err := ast.As(list.Value, &h); err != nil {
		return nil, errors.New("input.session.history must be a list of calls")
	}
	return h.Source(), nil
}

// callPattern parses the pattern of an operand. Its errors name no value.
func callPattern(t *ast.Term) (perm.CallPattern, error) {
	object, ok := t.Value.(ast.Object)
	if !ok {
		return perm.CallPattern{}, errors.New("a pattern of calls must be an object")
	}
	members := map[string]string{}
	err := object.Iter(func(k, v *ast.Term) error {
		name, isText := k.Value.(ast.String)
		value, isValue := v.Value.(ast.String)
		if !isText || !isValue {
			return errors.New("the members of a pattern must be texts")
		}
		members[string(name)] = string(value)
		return nil
	})
	if err != nil {
		return perm.CallPattern{}, err
	}
	return perm.NewCallPattern(members)
}

func callWindow(window, at *ast.Term) (w perm.CallWindow, now time.Time, err error) {
	text, ok := window.Value.(ast.String)
	if !ok {
		return w, now, errors.New("a window must be a text, such as 10m")
	}
	if w, err = perm.ParseCallWindow(string(text)); err != nil || w.Span() == 0 {
		return w, now, err
	}
	clock, _ := at.Value.(ast.String)
	if now, err = time.Parse(time.RFC3339Nano, string(clock)); err != nil {
		return w, now, errors.New("a window of time needs input.time")
	}
	return w, now, nil
}

// pastCall checks the constants that a rule gives to a function about earlier
// calls.
func (f *fieldCheck) pastCall(function string, ops []*ast.Term, loc *ast.Location) {
	patterns := map[string]int{"happened": 1, "before": 2, "count": 1}[function]
	for _, op := range ops[:min(patterns, len(ops))] {
		if t := f.follow(op); t.IsGround() && !hasRefs(t) {
			if _, err := callPattern(t); err != nil {
				f.found.add(spot(loc), `write a pattern such as {"tool": "mail_*", "outcome": "done"}`, "lib.%s: %s", function, err.Error())
			}
		}
	}
	if function != "count" || len(ops) < 2 {
		return
	}
	if t := f.follow(ops[1]); t.IsGround() && !hasRefs(t) {
		if _, _, err := callWindow(t, ast.StringTerm("2026-01-02T03:04:05Z")); err != nil {
			f.found.add(spot(loc), `write a window such as "10m", "24h" or "20"`, "lib.count: %s", err.Error())
		}
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
		f.found.add(spot(loc), "use happened, before or count of data.remit.lib", "input.session.history is a list only in tests")
	}
}

var pastRef = ast.MustParseRef("input.session.history")
