package revert

import (
	"fmt"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// applyGone folds a record whose body was destroyed. Its header shows that
// there was a call, and a later record describes the call.
func (t *Txn) applyGone(e record.Entry) error {
	h := e.Header
	switch {
	case h.Call == "" || !h.Kind.Erasable():
		return fmt.Errorf("the body of %s is gone, which is never erased", h.Kind)
	case h.Txn != t.ID:
		return nil // a revert in another stream, whose own records account for it
	case t.Owner == "":
		return fmt.Errorf("%s before transaction %s began", h.Kind, t.ID)
	}
	t.gone[h.Call] = e.Pos
	c, seen := t.byID[h.Call]
	switch h.Kind {
	case record.KindStarted, record.KindAsked, record.KindHeld, record.KindDenied, record.KindInvalid:
		if !seen {
			c = &Call{Ref: record.CallRef{Txn: t.ID, Call: h.Call}, Session: h.Session, Began: h.At, Phase: PhaseErased}
			t.Calls = append(t.Calls, c)
			t.byID[h.Call] = c
		}
	case record.KindPrompted:
		if t.Prompt != nil {
			t.Prompt.record, t.Prompt.Erased = h.Call, true
		}
	case record.KindCommitDecided:
		t.commitGone(h.Call, h.At)
	case record.KindReverting:
		t.reversals[h.Call] = &Reversal{}
	case record.KindDone, record.KindFailed:
		if seen {
			c.Ended = h.At
		}
	default: // adds nothing to the description of the call
	}
	if seen && c.Phase != PhaseErased {
		return fmt.Errorf("only some records of call %s are erased", h.Call)
	}
	return nil
}

// applyErased folds the record that describes an erased call.
func (t *Txn) applyErased(r record.Record, b *record.Erased) error {
	_, gone := t.gone[r.Call]
	c, isCall := t.byID[r.Call]
	switch {
	case isCall && c.Erased != nil && !gone:
		// If two people erase at once, the first one counts. But an action
		// between the two that one of them had not read may have left effects.
		c.Erased.Left = c.Erased.Left || b.Left
		return nil
	case !gone && t.erasedCalls[r.Call]:
		return nil
	case !gone:
		return fmt.Errorf("call %s is said to be erased, and its records are there", r.Call)
	}
	delete(t.gone, r.Call)
	t.erasedCalls[r.Call] = true
	if isCall {
		was := *b
		c.Erased, c.Tool = &was, b.Tool
	}
	return nil
}

// erasedResult is the result of reverting an erased call.
func (c *Call) erasedResult() effect.Result {
	return effect.Result{Resource: c.toolResource(), Outcome: effect.Failed, Why: c.erasedWhy()}
}

func (c *Call) erasedWhy() string {
	switch {
	case c.Erased.By != "":
		return "its inverse was erased by " + c.Erased.By
	default:
		return "its inverse was pruned after its retention"
	}
}

// allErased reports whether every call that could be reverted is erased.
func allErased(calls []*Call) bool {
	for _, c := range calls {
		if c.Phase != PhaseErased {
			return false
		}
	}
	return len(calls) > 0
}

// errErasedTxn is the error of reverting calls whose inverses are all erased.
func errErasedTxn(t *Txn, c *Call) error {
	return fmt.Errorf("transaction %s cannot be reverted: %w: %s", t.ID, record.ErrErased, c.erasedWhy())
}
