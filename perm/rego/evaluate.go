package rego

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/remit-dev/remit/perm"
)

// setElements holds the elements of each set, in the order of the policy.
type setElements map[string][]element

// element is one reason and the number of its rule.
type element struct {
	rule int
	text string
	at   string

	limit    *perm.Limit   // budget of an element of the set limit
	remember perm.Remember // of an element of the set ask that is an object
	sound    bool          // known to be one that can be applied
}

// evaluate queries the sets of a purpose. If a context is done, it always
// returns an error. A stopped evaluation can look like one that found no
// denial.
//
// It checks both contexts. A context that is not of package context cancels a
// derived one only some time later.
func (e *Engine) evaluate(ctx context.Context, rules *ruleset, body ast.Body, input *ast.Term, follow topdown.QueryTracer) (setElements, error) {
	leave, err := e.slots.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	timed, stop := context.WithTimeoutCause(ctx, e.deadline, errTimeout)
	defer stop()
	counted := &steps{most: e.steps}
	got, err := rules.ask(timed, body, input, counted, follow)
	switch {
	case ctx.Err() != nil:
		return nil, cancelled(ctx)
	case counted.over():
		return nil, fmt.Errorf("%w (%d)", ErrSteps, e.steps)
	case timed.Err() != nil:
		return nil, cancelled(timed)
	}
	return got, err
}

// steps counts the conditions that an evaluation checks, the numbers of ranges
// and the writes of long texts. At each of them OPA asks whether it was
// cancelled. Only the evaluating goroutine asks.
type steps struct {
	taken, most int
	halted      atomic.Bool
}

// Cancel ends the evaluation. Any goroutine may call it.
func (s *steps) Cancel() { s.halted.Store(true) }

// Cancelled counts one step.
func (s *steps) Cancelled() bool {
	s.taken++
	return s.over() || s.halted.Load()
}

func (s *steps) over() bool { return s.taken > s.most }

// evalSlots bounds the number of concurrent evaluations, which use only the
// processor. With many more evaluations than processors, each would exceed its
// timeout. Waiting for a slot does not count against the timeout. Nil: no
// bound.
type evalSlots chan struct{}

func newEvalSlots() evalSlots { return make(evalSlots, 2*runtime.GOMAXPROCS(0)) }

func (t evalSlots) enter(ctx context.Context) (leave func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, cancelled(ctx)
	}
}

// cancelled returns why a context is done.
func cancelled(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, errTimeout) {
		return cause
	}
	return fmt.Errorf("rego: the request was given up before the policy answered: %w", cause)
}

func (r *ruleset) ask(ctx context.Context, body ast.Body, input *ast.Term, halt *steps, follow topdown.QueryTracer) (setElements, error) {
	if len(body) == 0 {
		return setElements{}, nil
	}
	results, err := r.topdown(ctx, body, input, halt, follow)
	if err != nil {
		return nil, failed(err)
	}
	if len(results) != 1 {
		return nil, fmt.Errorf("%w: the policy has %d answers instead of one", ErrEvaluation, len(results))
	}
	return r.read(results[0])
}

// topdown runs a query. It evaluates each rule, without OPA's index of rules: in
// version 1.22, the index takes a variable in a literal collection for a value,
// so that "x in {input.call.args.owner, "root"}" holds for root alone.
func (r *ruleset) topdown(ctx context.Context, body ast.Body, input *ast.Term, halt *steps, follow topdown.QueryTracer) (topdown.QueryResultSet, error) {
	defer context.AfterFunc(ctx, halt.Cancel)()
	q := topdown.NewQuery(body).
		WithCompiler(r.compiler).
		WithStore(r.store).
		WithTransaction(r.txn).
		WithInput(input).
		WithCancel(halt).
		WithIndexing(false).
		WithStrictBuiltinErrors(true).
		WithBuiltins(pastFunctions()).
		WithMetrics(metrics.NoOp()).
		WithTime(time.Unix(0, 0)) // fixed, so that OPA reads no clock
	if follow != nil {
		q = q.WithQueryTracer(follow)
	}
	return q.Run(ctx)
}

// read returns the elements of a query result.
func (r *ruleset) read(result topdown.QueryResult) (setElements, error) {
	got := make(setElements, len(result))
	for name, term := range result {
		if name.IsGenerated() || name.IsWildcard() {
			continue
		}
		set, ok := term.Value.(ast.Set)
		if !ok {
			return nil, fmt.Errorf("%w: %s is not a set", ErrEvaluation, name)
		}
		list, err := r.elements(set)
		if err != nil {
			return nil, err
		}
		got[string(name)] = list
	}
	return got, nil
}

func (r *ruleset) elements(set ast.Set) ([]element, error) {
	if set.Len() == 0 {
		return nil, nil
	}
	list := make([]element, 0, set.Len())
	for _, term := range set.Slice() {
		e, err := r.element(term)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return ordered(list), nil
}

// element parses one [n, text]. The engine chose that shape, and the author
// wrote only the text. A value that is not text has no defined meaning.
func (r *ruleset) element(term *ast.Term) (element, error) {
	pair, ok := term.Value.(*ast.Array)
	if !ok || pair.Len() != 2 {
		return element{}, fmt.Errorf("%w: an element has no location", ErrEvaluation)
	}
	number, ok := pair.Elem(0).Value.(ast.Number)
	n, whole := number.Int()
	if !ok || !whole || n < 0 || n >= len(r.places) {
		return element{}, fmt.Errorf("%w: an element has no location", ErrEvaluation)
	}
	where := r.places[n]
	if object, budget := pair.Elem(1).Value.(ast.Object); budget && where.set == setLimit {
		l, err := limitOf(object)
		if err != nil {
			return element{}, fmt.Errorf("%w: the rule of limit at %s: %w", ErrEvaluation, where.at, err)
		}
		return element{rule: n, text: l.Budget, at: where.at, limit: &l}, nil
	}
	if object, asks := pair.Elem(1).Value.(ast.Object); asks && where.set == setAsk {
		reason, remember, err := askOf(object)
		if err != nil {
			return element{}, fmt.Errorf("%w: the rule of ask at %s: %w", ErrEvaluation, where.at, err)
		}
		return element{rule: n, text: reason, at: where.at, remember: remember}, nil
	}
	text, ok := pair.Elem(1).Value.(ast.String)
	if !ok {
		kind := ast.ValueName(pair.Elem(1).Value)
		return element{}, fmt.Errorf("%w: %s: an element of %s is of type %s, not a text", ErrEvaluation, where.at, where.set, kind)
	}
	return element{rule: n, text: string(text), at: where.at}, nil
}

// failed returns the error of a failed evaluation. OPA's message can repeat the
// operands, which are arguments of a call. So failed passes on only the
// position and the kind of the failure.
func failed(err error) error {
	var e *topdown.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%w: it stopped", ErrEvaluation)
	}
	if name, why, found := strings.Cut(e.Message, ": "); found && e.Location != nil && pastFunctions()[name] != nil { // it repeats no operand
		return fmt.Errorf("%w: %s: %s", ErrEvaluation, at(e.Location), why)
	}
	what := "rules contradict each other or cannot be evaluated (" + e.Code + ")"
	if name, _, found := strings.Cut(e.Message, ":"); found && ast.BuiltinMap[name] != nil {
		what = "the built-in " + name + " cannot work with what it was given; before it, compare what selects the call, such as input.tool.name, or check the type"
	}
	if e.Location == nil {
		return fmt.Errorf("%w: %s", ErrEvaluation, what)
	}
	return fmt.Errorf("%w: %s: %s", ErrEvaluation, at(e.Location), what)
}
