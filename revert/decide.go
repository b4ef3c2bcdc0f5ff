package revert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// ErrOutcomeKnown is returned if a caller resolves a call whose outcome is
// known or can be determined.
var ErrOutcomeKnown = errors.New("the outcome is already known")

// ResolveUnknown records a person's decision on a call with an unknown outcome:
// its effect is present or absent. The call then counts as done, and can be
// reverted, or as failed without effect. ResolveUnknown refuses a call that
// could act only through handles, because the versions tell its effect, unless
// the last revert found that they do not. It first records the outcome of a
// call that a dead process left in flight and that no tool here can probe as
// unknown, in the same step.
func (r *Reverter) ResolveUnknown(ctx context.Context, call string, d record.Decided) error {
	if d.By == "" || d.Why == "" {
		return errors.New("a resolution needs a person and the evidence that they checked")
	}
	t, c, err := LoadCall(ctx, r.Journal, call)
	if err != nil {
		return err
	}
	switch {
	case c.Confined() && (c.Phase == PhaseUnknown && !c.versionLost() || c.Phase == PhaseStarted):
		return fmt.Errorf("call %s: %w: the versions of its resources tell it; recover, and revert its transaction", call, ErrOutcomeKnown)
	case c.Phase == PhaseStarted:
		return r.decideAbandoned(ctx, t, c, &d)
	case c.Phase != PhaseUnknown:
		return fmt.Errorf("call %s: %w: it is %s", call, ErrOutcomeKnown, c.Phase)
	}
	// Not fenced: the person who decides does not own the transaction, which
	// may have ended. The record is durable before any process acts on it.
	//mutant:barrier
	return r.recorder(t).Write(ctx, Write{Records: []CallRecord{{Txn: t.ID, Call: call, Body: &d}}, Durable: true})
}

// versionLost reports whether the last attempt to revert a call found a change whose
// version only the lost response could have told.
func (c *Call) versionLost() bool {
	return c.Reversal != nil && c.Reversal.Reverted != nil && slices.ContainsFunc(c.Reversal.Reverted.Results, func(r effect.Result) bool {
		return r.Outcome == effect.Unknown && slices.ContainsFunc(c.Changes, func(ch effect.Change) bool { return ch.Resource == r.Resource && !ch.Post.Known() })
	})
}

// decideAbandoned resolves a call that has no end because its process died.
func (r *Reverter) decideAbandoned(ctx context.Context, t *Txn, c *Call, d *record.Decided) error {
	if t.End != "" {
		return fmt.Errorf("call %s: its transaction has ended, and nothing can be added to it: %w", c.Ref.Call, journal.ErrNotOwner)
	}
	leave, err := r.acquire(t.ID)
	if err != nil {
		return err
	}
	defer leave()
	if t, err = r.adopt(ctx, t); err != nil {
		return err
	}
	unknown := &record.Unknown{Status: "unknown", Why: "its process died"}
	return r.recorder(t).In(t.ID).Write(ctx, Write{
		//mutant:barrier
		Records: []CallRecord{{Call: c.Ref.Call, Body: unknown}, {Call: c.Ref.Call, Body: d}}, Durable: true,
	})
}
