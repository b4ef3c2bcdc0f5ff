package revert

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// IsHeld reports whether the commit must release the call. That is so if it was
// not released yet, if its release had no effect, or if its release has an
// unknown outcome and its tool is idempotent for the same key.
func (c *Call) IsHeld() bool {
	return c.waits() || (c.Held != nil && c.Dropped == nil && c.Phase == PhaseUnknown && c.Held.Idempotent && !c.hasVersions())
}

// hasVersions reports whether the journal knows the version that a change of the
// call left. Its inverse belongs to this attempt, and does not fit another
// attempt.
func (c *Call) hasVersions() bool {
	//mutant:token
	return slices.ContainsFunc(c.Changes, func(ch effect.Change) bool { return ch.Post.Known() && !ch.Post.Same(ch.Pre) })
}

// waits reports whether a held call has had no effect and was not dropped.
func (c *Call) waits() bool {
	return c.Held != nil && c.Dropped == nil && (c.Phase == PhaseHeld || c.Phase == PhaseFailed)
}

// mustBeReleased reports whether a call waits that the commit must not skip. If a
// person resolved the call as absent, the commit may have begun when it was
// still unknown.
func (c *Call) mustBeReleased() bool { return c.waits() && c.Decided == nil }

// HeldCalls returns the calls that the commit must release, in the order in
// which they were held.
func (t *Txn) HeldCalls() []*Call {
	var queue []*Call
	for _, c := range t.Calls {
		if t.End == "" && c.IsHeld() {
			queue = append(queue, c)
		}
	}
	slices.SortStableFunc(queue, func(a, b *Call) int { return cmp.Compare(a.Held.Sequence, b.Held.Sequence) })
	return queue
}

// applyHeld folds a record of a held call that is not running.
func (t *Txn) applyHeld(c *Call, r record.Record) error {
	_, again := r.Body.(*record.Started)
	// A person can resolve a call as applied while a commit sends it again:
	// both have the same single effect.
	if again = again && c.Decided != nil && c.Held.Idempotent; !c.IsHeld() && !again {
		return fmt.Errorf("%s of call %s, which was held and ended as %s", r.Kind, r.Call, c.Phase)
	}
	switch b := r.Body.(type) {
	case *record.Dropped:
		c.Dropped = b
		if c.Phase == PhaseHeld {
			c.Phase, c.Ended = PhaseDropped, r.At
		}
		return nil
	case *record.Started:
		return cmp.Or(t.checkRelease(c), c.release(b, r))
	case *record.Failed: // it could not start
		if b.Proof != "not_started" || c.Phase == PhaseUnknown {
			return fmt.Errorf("failed by %s of call %s, which was not released", b.Proof, r.Call)
		}
		c.Phase, c.Failed, c.Ended = PhaseFailed, b, r.At
		return t.checkRelease(c)
	default:
		return fmt.Errorf("%s of call %s, which waits for the commit", r.Kind, r.Call)
	}
}

// checkRelease refuses a release that no commit does: before the commit has
// begun, or before another call that was held earlier.
func (t *Txn) checkRelease(c *Call) error {
	if !t.Committing || t.Aborting {
		return fmt.Errorf("call %s was released, and transaction %s was not committing", c.Ref.Call, t.ID)
	}
	for _, other := range t.Calls {
		if other != c && other.mustBeReleased() && other.Held.Sequence < c.Held.Sequence {
			return fmt.Errorf("call %s was released before call %s, which was held earlier", c.Ref.Call, other.Ref.Call)
		}
	}
	return nil
}

// release starts a held call, or starts it again without the records of an
// earlier attempt that had no effect.
func (c *Call) release(b *record.Started, r record.Record) error {
	if b.Key != c.Held.Key {
		return fmt.Errorf("call %s was released under another operation key than it was held with", r.Call)
	}
	fresh := Call{Ref: c.Ref, Session: c.Session, Tool: c.Tool, Asked: c.Asked, Answered: c.Answered, Held: c.Held, Notes: c.Notes, Feedback: c.Feedback, tries: c.tries}
	fresh.Phase, fresh.Started, fresh.Began = PhaseStarted, b, r.At
	fresh.doubt = c.doubt || c.Phase == PhaseUnknown
	*c = fresh
	return nil
}

// beginCommit folds the beginning of a commit that has calls to release.
func (t *Txn) beginCommit() error {
	if t.Committing || t.Aborting {
		return fmt.Errorf("transaction %s began to commit a second time, or during its revert", t.ID)
	}
	t.Committing = true
	return nil
}

// checkCommitting refuses records that cannot follow the beginning of a commit.
func (t *Txn) checkCommitting(r record.Record) error {
	if t.Committing {
		return fmt.Errorf("%s after transaction %s began to commit", r.Kind, t.ID)
	}
	return nil
}

// checkNoneHeld refuses the end of a transaction that still has a held call.
func (t *Txn) checkNoneHeld() error {
	for _, c := range t.Calls {
		if c.mustBeReleased() {
			return fmt.Errorf("transaction %s ended, and call %s was neither released nor dropped", t.ID, c.Ref.Call)
		}
	}
	return nil
}

func (u Options) drop(cause string) record.Dropped {
	return record.Dropped{Cause: cause, By: u.By}
}

// drop drops held calls. They had no effect, so there is nothing to revert. The
// record is durable before the calls of the same savepoint or transaction are
// reverted: no later commit may release the dropped calls without them.
func (r *Reverter) drop(ctx context.Context, t *Txn, calls []*Call, why record.Dropped) ([]ResourceResult, error) {
	items := []ResourceResult{}
	for _, c := range calls {
		// In the stream of the call's own session, whose counters it corrects.
		rec := NewRecorder(r.Journal, r.Host, c.Session).In(t.ID)
		//mutant:barrier
		if err := rec.Write(ctx, Write{Records: []CallRecord{{Call: c.Ref.Call, Body: &why}}, Durable: true}); err != nil {
			return items, fmt.Errorf("call %s could not be dropped: %w", c.Ref.Call, err)
		}
		if r.OnDrop != nil {
			r.OnDrop(c.Session, c.Ref.Call)
		}
		if !c.HasEffects() { // otherwise the report has an item for its unknown effect
			items = append(items, c.droppedItem())
		}
	}
	return items, nil
}

func (c *Call) droppedItem() ResourceResult {
	why := "it was held until the commit and never ran"
	if c.Phase == PhaseFailed {
		why = "it was held until the commit, and has had no effect"
	}
	res := effect.Result{Resource: c.toolResource(), Outcome: effect.Already, Why: why}
	return ResourceResult{Call: c.Ref.Call, Tool: c.Tool.Name, Action: ActionDrop, Result: res}
}
