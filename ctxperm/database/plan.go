package database

import (
	"context"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// Plan reads each row, and changes none. A row is restored to its version
// before the first change, if it still has a version that one of the changes
// left.
func (s scheme) Plan(ctx context.Context, changes []effect.Change, keep journal.ContentStore) (steps []effect.Step, blobs []journal.Blob, err error) {
	rows, all, err := s.batches(ctx, changes, keep)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range all {
		if b.err == nil {
			b.err = b.loadOutcomes(ctx)
		}
		if b.err == nil {
			b.err = b.look(ctx)
		}
	}
	failed := map[*row]error{}
	for _, b := range all {
		for _, r := range b.rows {
			failed[r] = b.err
		}
	}
	names, of := sorted(rows)
	slices.Reverse(names) // restores the last changed rows first
	for _, name := range names {
		own := of[name]
		step := judge(own, failed[own[0]])
		if step.Plan == effect.Restored {
			first := slices.IndexFunc(own, func(r *row) bool { return r.outcome != engine.Aborted })
			if step.Change, err = own[first].counter(ctx, keep, &blobs); err != nil {
				return nil, nil, err
			}
		}
		steps = append(steps, step)
	}
	return steps, blobs, nil
}

// judge plans the step of one row, whose changes are in order.
func judge(own []*row, failed error) effect.Step {
	step := effect.Step{Plan: effect.Conflict, Change: effect.Change{Scheme: schemeName, Resource: own[0].Resource}}
	for _, r := range own {
		step.Of = append(step.Of, r.N)
	}
	if failed != nil {
		step.Plan, step.Why = effect.Failed, failed.Error()
		return step
	}
	step.Change.Pre = own[0].version()
	if slices.ContainsFunc(own, func(r *row) bool { return r.outcome == engine.Running }) {
		step.Plan, step.Why = effect.Unknown, "its transaction has not ended in the database; wait for its end, then revert the call again"
		return step
	}
	happened := slices.DeleteFunc(slices.Clone(own), func(r *row) bool { return r.outcome == engine.Aborted })
	if len(happened) == 0 { // the current version is not the call's
		step.Plan = effect.Already
		return step
	}
	now := step.Change.Pre
	switch {
	case own[0].now.Why != "":
		step.Why = own[0].now.Why + "; remit did not change it"
	//mutant:token
	case now.Same(happened[0].Pre):
		step.Plan = effect.Already
	//mutant:token
	case slices.ContainsFunc(happened, func(r *row) bool { return now.Same(r.Post) }):
		step.Plan = effect.Restored
	default:
		step.Why = difference(happened[len(happened)-1])
	}
	return step
}

// counter returns the change that restores a row.
func (r *row) counter(ctx context.Context, keep journal.ContentStore, blobs *[]journal.Blob) (effect.Change, error) {
	inv := inverse{At: r.At, Mark: engine.TxnMarker{Identity: r.Mark.Identity}, Table: r.Table, Was: r.now.Now, Will: r.Was}
	c, blob, err := inv.change(ctx, nameIn(r.Resource), r.ref(), keep)
	c.Resource = r.Resource
	if blob != nil {
		*blobs = append(*blobs, *blob)
	}
	return c, err
}

// difference describes the current version, compared with the one that the call
// left.
func difference(r *row) string {
	const then = "; remit did not change it: check it, and restore it by hand"
	switch {
	case r.Will == nil:
		return "another client created the row again after the call deleted it" + then
	case r.now.Now == nil:
		return "another client deleted the row after the call" + then
	}
	for i := range r.Will {
		if r.Will[i] != r.now.Now[i] {
			return fmt.Sprintf("another client changed the row after the call: column %s differs%s", r.Table.Cols[i], then)
		}
	}
	return "the row is not as the call left it" + then
}
