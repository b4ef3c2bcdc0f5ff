package revert

import (
	"context"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// AtomicScheme is an optional interface of a Scheme whose resources change in
// their own transactions, such as the rows of a database. No change of it is
// ever half-done, so Settle only reads.
type AtomicScheme interface {
	Scheme
	// TookEffect reports whether the changes of a call took effect, independent
	// of later changes. known is false if no record of it is left. An error
	// says that it cannot be determined yet.
	TookEffect(ctx context.Context, changes []effect.Change) (took, known bool, err error)
	// Versions reads many resources at once. It returns one version token for
	// each change.
	Versions(ctx context.Context, changes []effect.Change) ([]effect.Token, error)
	// ApplyAll applies planned steps together, by the rules of Apply. It
	// returns one result for each.
	ApplyAll(ctx context.Context, steps []effect.Step, keep journal.ContentStore) []effect.Result
}

// batchScheme is a Scheme that applies many steps at less cost than one by one.
type batchScheme interface {
	Scheme
	ApplyAll(ctx context.Context, steps []effect.Step, keep journal.ContentStore) []effect.Result
}

// applySteps applies the steps of a call in order. All steps of a batchScheme
// run at the position of its first step.
func (r *Reverter) applySteps(ctx context.Context, w Environment, steps []effect.Step) []effect.Result {
	out := make([]effect.Result, len(steps))
	done := map[string]bool{}
	for i, s := range steps {
		scheme, _ := w.scheme(s.Change.Scheme)
		g, together := scheme.(batchScheme)
		switch {
		case !together || !s.Plan.Applies():
			out[i] = r.applyStep(ctx, w, s)
		case !done[g.Name()]:
			done[g.Name()] = true
			r.applyGroup(ctx, g, steps, out)
		}
	}
	return out
}

func (r *Reverter) applyGroup(ctx context.Context, g batchScheme, steps []effect.Step, out []effect.Result) {
	var own []effect.Step
	var at []int
	for i, s := range steps {
		if s.Plan.Applies() && s.Change.Scheme == g.Name() {
			own, at = append(own, s), append(at, i)
		}
	}
	results := make([]effect.Result, 0, len(own))
	if err := r.Host.Point(ctx, "revert.apply"); err != nil {
		for _, s := range own {
			results = append(results, effect.Result{Resource: s.Change.Resource, Outcome: effect.Unknown, Why: err.Error()})
		}
	} else {
		results = g.ApplyAll(ctx, own, r.Journal)
	}
	for n, i := range at {
		out[i] = effect.Result{Resource: steps[i].Change.Resource, Outcome: effect.Unknown, Why: "its scheme returned no result"}
		if n < len(results) {
			out[i] = results[n]
			out[i].Forced = steps[i].Forced && out[i].Outcome == effect.Restored
		}
	}
}

// tookEffect reports whether a call took effect as a whole. It knows that only if all
// changes of the call belong to atomic schemes.
func (w Environment) tookEffect(ctx context.Context, c *Call) (tookEffect, known bool, err error) {
	for _, name := range schemesOf(c.Changes) {
		s, _ := w.scheme(name)
		a, atomic := s.(AtomicScheme)
		if !atomic {
			return false, false, nil
		}
		tookEffect, known, err = a.TookEffect(ctx, changesOf(c.Changes, name))
		if err != nil || !known {
			return false, false, err
		}
	}
	return tookEffect, known && len(schemesOf(c.Changes)) == 1, nil
}

// changesOf returns the changes of one scheme.
func changesOf(changes []effect.Change, scheme string) []effect.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c effect.Change) bool { return c.Scheme != scheme })
}
