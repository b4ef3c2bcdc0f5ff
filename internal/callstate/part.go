package callstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// Part is one of the tools that a composed tool consists of.
type Part struct {
	Name   string // unique among the parts
	Tool   string
	Key    string // operation key
	Class  effect.Class
	Within perm.Set // its accesses, a subset of those of the call
}

// Piece returns the call as seen by one of its parts. It shares the state of
// the call, but only has the accesses of the part, and its own notes.
func (c *Call) Piece(p Part) *Call {
	in := &Call{cfg: c.cfg, within: &p.Within, prefix: c.prefix + p.Name + "/", sharedState: c.sharedState}
	if c.within != nil {
		less := c.within.Intersect(p.Within)
		in.within = &less
	}
	in.cfg.Tool, in.cfg.Key, in.cfg.Class = p.Tool, p.Key, p.Class
	if all := c.cfg.MaxAccesses; all != nil {
		in.cfg.MaxAccesses = func() perm.Set { return all().Intersect(*in.within) }
	}
	return in
}

// Spared returns the same call for accesses whose denial does not end the call,
// because the caller refuses each of them by itself and reports that in the
// result.
func (c *Call) Spared() *Call {
	in := *c
	in.spared = true
	return &in
}

// checkPart refuses accesses that only other parts have.
func (c *Call) checkPart(a perm.ResourceAccess) error {
	if c.within == nil || c.within.Allows(a) {
		return nil
	}
	err := &DeniedError{Access: a, Stage: "grant", Why: "the tool " + c.cfg.Tool + " does not declare that it needs to " + a.String()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mark(err, a)
	return err
}

// checkPure refuses a change in a call that is declared pure.
func (c *Call) checkPure(a perm.ResourceAccess) error {
	if c.cfg.Class != effect.Pure || !a.Action.Changes() {
		return nil
	}
	err := &DeniedError{Access: a, Stage: "grant", Why: "the tool " + c.cfg.Tool + " declares this call pure, so the call changes nothing; declare the effect class of what it does"}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mark(err, a)
	return err
}

// Notes returns the notes with the part's prefix, without the prefix.
func (c *Call) Notes() map[string]json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return NotesOf(c.notes, c.prefix)
}

// NotesOf returns the notes with a prefix, without the prefix.
func NotesOf(all map[string]json.RawMessage, prefix string) map[string]json.RawMessage {
	own := map[string]json.RawMessage{}
	for key, value := range all {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			own[rest] = slices.Clone(value)
		}
	}
	return own
}

// PartProgress is the state of a part at a point in time.
type PartProgress struct {
	changes, handles, states int
}

// Mark returns the current progress, for Rollback.
func (c *Call) Mark() PartProgress {
	c.mu.Lock()
	defer c.mu.Unlock()
	return PartProgress{changes: len(c.changes), handles: len(c.handles), states: c.lefts}
}

// Own returns the numbers of the changes of the part, and of nested parts,
// since then.
func (c *Call) Own(since PartProgress) (own []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := since.changes; i < len(c.of); i++ {
		if strings.HasPrefix(c.of[i], c.prefix) {
			own = append(own, i+1)
		}
	}
	return own
}

// ErrNotReverted states that the effects of a part could not be reverted during
// its call.
var ErrNotReverted = errors.New("the effects of the part could not be reverted")

// Rollback reverts the effects of a part since m, during its call. It uses
// ordinary changes of the call, so that a revert of the call covers everything
// after any crash. The part has returned.
func (c *Call) Rollback(ctx context.Context, m PartProgress) error {
	c.abortHandles(ctx, m)
	if err := c.forget(m.states); err != nil {
		return err
	}
	own := c.Own(m)
	if len(own) == 0 {
		return nil
	}
	if c.cfg.Environment == nil {
		return ErrNotReverted
	}
	w, err := c.cfg.Environment(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotReverted, err)
	}
	var changes []effect.Change
	all := c.Changes()
	for _, n := range own {
		changes = append(changes, all[n-1])
	}
	for len(changes) > 0 { // newest kind first
		name := changes[len(changes)-1].Scheme
		var these, others []effect.Change
		for _, ch := range changes {
			if ch.Scheme == name {
				these = append(these, ch)
			} else {
				others = append(others, ch)
			}
		}
		if err := c.back(ctx, w, name, these); err != nil {
			return err
		}
		changes = others
	}
	return nil
}

// abortHandles aborts the handles that the part opened, newest first.
func (c *Call) abortHandles(ctx context.Context, m PartProgress) {
	c.mu.Lock()
	var mine, rest []partHandle
	for i, h := range c.handles {
		if i >= m.handles && strings.HasPrefix(h.of, c.prefix) {
			mine = append(mine, h)
		} else {
			rest = append(rest, h)
		}
	}
	c.handles = rest
	c.commits = slices.ContainsFunc(rest, func(h partHandle) bool { return h.commits })
	c.mu.Unlock()
	abort(ctx, mine)
}

// back reverts changes of one scheme.
func (c *Call) back(ctx context.Context, w revert.Environment, name string, changes []effect.Change) error {
	at := slices.IndexFunc(w.Schemes, func(s revert.Scheme) bool { return s.Name() == name })
	if at < 0 {
		return fmt.Errorf("%w: no scheme here can restore %s resources", ErrNotReverted, name)
	}
	scheme, keep := w.Schemes[at], c.cfg.Recorder.Journal()
	steps, blobs, err := scheme.Plan(ctx, changes, keep)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotReverted, err)
	}
	var todo []effect.Change
	for _, s := range steps {
		if !s.Plan.Clean() {
			return fmt.Errorf("%w: %s: %s", ErrNotReverted, s.Plan, s.Why)
		}
		if s.Plan == effect.Restored {
			todo = append(todo, s.Change)
		}
	}
	if _, err := c.Intend(ctx, todo, blobs); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReverted, err)
	}
	steps = slices.DeleteFunc(steps, func(s effect.Step) bool { return s.Plan != effect.Restored })
	if len(steps) == 0 {
		return nil
	}
	if err := c.cfg.Recorder.Host().Point(ctx, "line.rollback"); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReverted, err)
	}
	for _, res := range apply(ctx, scheme, steps, keep) {
		if !res.Outcome.Clean() {
			return fmt.Errorf("%w: %s: %s", ErrNotReverted, res.Outcome, res.Why)
		}
	}
	return nil
}

// apply performs steps of one scheme, together if the scheme supports that,
// because some schemes have their own order.
func apply(ctx context.Context, scheme revert.Scheme, steps []effect.Step, keep journal.ContentStore) []effect.Result {
	if s, ok := scheme.(interface {
		ApplyAll(ctx context.Context, steps []effect.Step, keep journal.ContentStore) []effect.Result
	}); ok {
		return s.ApplyAll(ctx, steps, keep)
	}
	var out []effect.Result
	for _, s := range steps {
		out = append(out, scheme.Apply(ctx, s, keep))
		if !out[len(out)-1].Outcome.Clean() {
			break
		}
	}
	return out
}

// ComposedError is the failure of a composed tool. It states the known effects
// of all parts, not only of the failed one.
type ComposedError struct {
	Err error
	// Nothing: no part has an effect left outside handles. Back: such effects
	// are known, and the tool's Revert reverts them.
	Nothing, Back bool
}

// Error returns the text of the cause.
func (e *ComposedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause, for its kind. What single parts proved does not
// follow from it.
func (e *ComposedError) Unwrap() error { return e.Err }
