package revert

import (
	"context"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// mergeScheme is a Scheme that can keep what another actor changed after a call.
type mergeScheme interface {
	Scheme
	// Merge plans again all changes of one resource, whose plan is a conflict.
	// The step is Merged, Already, or a Conflict with a better reason and the
	// overlaps that caused it. It is zero if there is nothing to add to that plan.
	Merge(ctx context.Context, changes []effect.Change, keep journal.ContentStore) (step effect.Step, overlaps []effect.Overlap, blobs []journal.Blob, err error)
}

// merging says which conflicts a revert merges. The zero value merges all.
type merging struct {
	never  bool
	only   map[string]bool // by resource; nil: all
	permit func(ctx context.Context, c Call, resource string) error
	calls  func(of []int) []*Call  // calls of changes by their numbers; nil: permit is not asked
	made   map[string]effect.Token // by resource: the merged version of an attempt without an end
}

// of returns the merging of the changes of one call, or of those of its
// reverts.
func (g merging) of(c *Call, redo bool) merging {
	g.calls = func([]int) []*Call { return []*Call{c} }
	g.made = map[string]effect.Token{}
	for _, u := range c.tries {
		if u.away || (u.Reverting.Cause == causeRedo) != redo {
			continue
		}
		for _, s := range u.Reverting.Steps {
			if s.Plan == effect.Merged {
				g.made[s.Change.Resource] = s.Change.Post
			}
		}
	}
	return g
}

// planned restricts the merging to what an interrupted attempt had planned to
// merge: its options are not recorded, and its policy is not there.
func (g merging) planned(steps []effect.Step) merging {
	g.only = map[string]bool{}
	for _, s := range steps {
		if s.Plan == effect.Merged {
			g.only[s.Change.Resource] = true
		}
	}
	return g
}

// merge plans conflicting steps again, so that they keep what another actor
// changed. It leaves alone what a dependent call changed.
func (m revertMode) merge(ctx context.Context, s Scheme, changes []effect.Change, steps []effect.Step, blobs []journal.Blob, keep journal.ContentStore) ([]effect.Step, []journal.Blob, error) {
	merger, ok := s.(mergeScheme)
	if !ok {
		return steps, blobs, nil
	}
	whole := map[string]int{} // by resource: the step that reverts all its changes
	for i, step := range steps {
		resource := step.Change.Resource
		if step.Plan != effect.Conflict {
			continue
		}
		//mutant:none merging again mostly finds the same
		if m.merges.made[resource].Same(step.Change.Pre) {
			steps[i].Plan, steps[i].Why = effect.Already, "an attempt that was interrupted merged it"
			continue
		}
		if _, found := whole[resource]; found {
			continue
		}
		if _, dependent := m.dependentOn(step); dependent || m.merges.never || m.merges.only != nil && !m.merges.only[resource] {
			continue
		}
		own := slices.DeleteFunc(slices.Clone(changes), func(c effect.Change) bool { return c.Resource != resource })
		if len(own) == 0 {
			continue
		}
		merged, overlaps, kept, err := merger.Merge(ctx, own, keep)
		if err != nil {
			return nil, nil, err
		}
		why := m.merges.refuses(ctx, merged)
		switch {
		case merged.Plan == "":
		case why != "":
			steps[i].Why = why
		case merged.Plan == effect.Conflict:
			steps[i].Why = merged.Why
			if m.overlaps != nil {
				m.overlaps[resource] = overlaps
			}
		default:
			steps[i], blobs, whole[resource] = merged, append(blobs, kept...), i
		}
	}
	out := steps[:0:0]
	for i, s := range steps {
		if n, ok := whole[s.Change.Resource]; !ok || n == i { // else of a part of the changes
			out = append(out, s)
		}
	}
	return out, blobs, nil
}

// refuses returns why a planned merge is not permitted, or "".
func (g merging) refuses(ctx context.Context, s effect.Step) string {
	if s.Plan != effect.Merged || g.permit == nil || g.calls == nil {
		return ""
	}
	for _, c := range g.calls(s.Of) {
		if err := g.permit(ctx, *c, s.Change.Resource); err != nil {
			return err.Error()
		}
	}
	return ""
}
