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

// Part is one of the tools that a call's tool is composed of.
type Part struct {
	Name   string // among the parts
	Tool   string
	Key    string // operation key
	Class  effect.Class
	Within perm.Set // what it may touch, of all that the call may
}

// Piece is the call as one of its parts sees it. It shares everything with the call, but
// reaches no further than the part may, and its notes are its own.
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

// inside refuses a part what only other parts may.
func (c *Call) inside(a perm.ResourceAccess) error {
	if c.within == nil || c.within.Allows(a) {
		return nil
	}
	err := &DeniedError{Access: a, Stage: "grant", Why: "the tool " + c.cfg.Tool + " does not declare that it needs to " + a.String()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mark(err, a)
	return err
}

// effectless refuses a change in a call that declares to have none.
func (c *Call) effectless(a perm.ResourceAccess) error {
	if c.cfg.Class != effect.Pure || !a.Action.Changes() {
		return nil
	}
	err := &DeniedError{Access: a, Stage: "grant", Why: "the tool " + c.cfg.Tool + " declares this call pure, so the call changes nothing; declare the effect class of what it does"}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mark(err, a)
	return err
}

// Notes returns what was noted under the part's own prefix, without it.
func (c *Call) Notes() map[string]json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return NotesOf(c.notes, c.prefix)
}

// NotesOf are the notes whose keys have a prefix, without it.
func NotesOf(all map[string]json.RawMessage, prefix string) map[string]json.RawMessage {
	own := map[string]json.RawMessage{}
	for key, value := range all {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			own[rest] = slices.Clone(value)
		}
	}
	return own
}

// PartProgress is how far a part has come.
type PartProgress struct {
	changes, handles, states int
}

// Mark is for Rollback.
func (c *Call) Mark() PartProgress {
	c.mu.Lock()
	defer c.mu.Unlock()
	return PartProgress{changes: len(c.changes), handles: len(c.handles), states: c.lefts}
}

// Own lists the numbers of the changes that the part, or one inside it, made since.
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

// ErrNotReverted says that what a part did could not be taken back while its call went on.
var ErrNotReverted = errors.New("what it did could not be taken back")

// Rollback takes back what a part did since the mark, while its call goes on: by changes of
// the call like any other, so that whatever becomes of the process the call is taken back
// as a whole. The part has returned.
func (c *Call) Rollback(ctx context.Context, m PartProgress) error {
	c.unhand(ctx, m)
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

// unhand aborts the handles that the part opened, newest first.
func (c *Call) unhand(ctx context.Context, m PartProgress) {
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

// back takes changes of one scheme back.
func (c *Call) back(ctx context.Context, w revert.Environment, name string, changes []effect.Change) error {
	at := slices.IndexFunc(w.Schemes, func(s revert.Scheme) bool { return s.Name() == name })
	if at < 0 {
		return fmt.Errorf("%w: nothing here knows how to restore %s resources", ErrNotReverted, name)
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

// apply does steps of one scheme, together if the scheme can: some have an order of their own.
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

// ComposedError is how a call whose tool is composed of others went wrong: what is known of
// the effects of all parts, and not of the one that failed alone.
type ComposedError struct {
	Err error
	// Nothing: no part has an effect left outside handles. Back: what they have there is
	// known, and the tool's Revert takes it back.
	Nothing, Back bool
}

// Error says what went wrong.
func (e *ComposedError) Error() string { return e.Err.Error() }

// Unwrap tells what kind of error it is; what single parts proved is not to be taken from it.
func (e *ComposedError) Unwrap() error { return e.Err }
