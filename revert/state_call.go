package revert

import (
	"encoding/json"
	"fmt"

	"github.com/remit-dev/remit/revert/record"
)

// applyCall folds one record of a call into the transaction. It refuses
// sequences that no run can write.
func (t *Txn) applyCall(e record.Entry, r record.Record) error {
	c, seen := t.byID[r.Call]
	if !seen {
		if _, undo := t.reversals[r.Call]; undo {
			return t.applyReversal(e, r)
		}
		return t.beginCall(r)
	}
	switch b := r.Body.(type) {
	case *record.Verified:
		return c.apply(r)
	case *record.Answered:
		if c.refused(b) {
			return nil
		}
		c.Answered = b // any process may write one at any time; only a pending call reads it
		return nil
	case *record.Decided:
		return c.decide(b)
	case *record.Feedback:
		c.Feedback = append(c.Feedback, b.Feedback)
		return nil
	}
	if c.Phase == PhasePending {
		return t.proceed(c, r)
	}
	if c.Held != nil && c.Phase != PhaseStarted {
		return t.applyHeld(c, r)
	}
	if c.Phase != PhaseStarted {
		return fmt.Errorf("%s of call %s, which ended as %s", r.Kind, r.Call, c.Phase)
	}
	if _, changed := r.Body.(*record.Changed); changed {
		c.at = append(c.at, e.Pos)
	}
	return c.apply(r)
}

// personProof is the proof of a call that a person resolved as absent.
const personProof = "person"

// decide resolves an in-doubt call. If two people resolve it at once, the first
// one counts.
func (c *Call) decide(b *record.Decided) error {
	switch {
	case c.Decided != nil, c.Held != nil && c.Phase != PhaseUnknown: // it was released again meanwhile
		return nil
	case c.Phase != PhaseUnknown:
		return fmt.Errorf("decided on call %s, which is %s", c.Ref.Call, c.Phase)
	}
	c.Decided = b
	if b.Applied {
		c.Phase, c.Done = PhaseDone, &record.Done{Output: json.RawMessage("null"), Recovered: true}
		return nil
	}
	c.Phase, c.Failed = PhaseFailed, &record.Failed{Status: "failed", Why: "its effect is not there: " + b.Why, Proof: personProof}
	return nil
}

// proceed ends the waiting of a pending call: the call starts, once, or is held
// until the commit, or denied.
func (t *Txn) proceed(c *Call, r record.Record) error {
	switch b := r.Body.(type) {
	case *record.Held:
		c.Phase, c.Held, c.Began = PhaseHeld, b, r.At
		return t.checkCommitting(r)
	case *record.Started:
		c.Phase, c.Started, c.Began = PhaseStarted, b, r.At
	case *record.Asked:
		if !b.During {
			return fmt.Errorf("%s of call %s, which waits for an answer", r.Kind, r.Call)
		}
		c.Asked, c.Answered = b, nil // it ran, and waits again
	case *record.Denied:
		c.Phase, c.Denied, c.Ended = PhaseDenied, b, r.At
	default:
		return fmt.Errorf("%s of call %s, which waits for an answer", r.Kind, r.Call)
	}
	return nil
}

func (t *Txn) beginCall(r record.Record) error {
	c := &Call{Ref: record.CallRef{Txn: t.ID, Call: r.Call}, Session: r.Session, Began: r.At, Notes: map[string]json.RawMessage{}}
	switch b := r.Body.(type) {
	case *record.Started:
		c.Phase, c.Started, c.Tool = PhaseStarted, b, b.Tool
	case *record.Asked:
		c.Phase, c.Asked, c.Tool = PhasePending, b, b.Tool
	case *record.Held:
		c.Phase, c.Held, c.Tool = PhaseHeld, b, b.Tool
	case *record.Denied:
		c.Phase, c.Denied, c.Tool, c.Ended = PhaseDenied, b, b.Tool, r.At
	case *record.Invalid:
		c.Phase, c.Invalid, c.Tool, c.Ended = PhaseInvalid, b, b.Tool, r.At
	default:
		return fmt.Errorf("%s of call %s before it started", r.Kind, r.Call)
	}
	if r.Call == "" {
		return fmt.Errorf("%s without a call id", r.Kind)
	}
	t.Calls = append(t.Calls, c)
	t.byID[r.Call] = c
	return t.checkCommitting(r)
}

func (c *Call) apply(r record.Record) error {
	switch b := r.Body.(type) {
	case *record.Asked:
		if !b.During {
			return fmt.Errorf("%s of call %s, which has started", r.Kind, r.Call)
		}
		c.Asked, c.Answered = b, nil // it waits, and still runs
	case *record.Approved:
		c.Approvals = append(c.Approvals, *b)
	case *record.Changed:
		if b.N != len(c.Changes)+1 {
			return fmt.Errorf("change %d of call %s, want %d", b.N, r.Call, len(c.Changes)+1)
		}
		c.Changes = append(c.Changes, b.Change)
	case *record.PostVersions:
		return c.setPosts(b.Posts)
	case *record.RevertNote:
		c.Notes[b.Key] = b.Value
	case *record.Done:
		c.Phase, c.Done, c.Ended = PhaseDone, b, r.At
		return c.setPosts(b.Posts)
	case *record.Failed:
		c.Phase, c.Failed, c.Ended = PhaseFailed, b, r.At
	case *record.Unknown:
		c.Phase, c.Unknown, c.Ended = PhaseUnknown, b, r.At
	case *record.Verified:
		c.Verified = append(c.Verified, *b)
	default:
		return fmt.Errorf("%s cannot follow in call %s", r.Kind, r.Call)
	}
	return nil
}

func (c *Call) setPosts(posts []record.Post) error {
	for _, p := range posts {
		if p.N < 1 || p.N > len(c.Changes) {
			return fmt.Errorf("version of change %d, but call %s has %d", p.N, c.Ref.Call, len(c.Changes))
		}
		c.Changes[p.N-1].Post = p.Post
	}
	return nil
}

// refused reports whether a person has rejected the approval request of an
// answer. A rejection is final: later answers to the same request do not count.
func (c *Call) refused(b *record.Answered) bool {
	return c.Answered != nil && !c.Answered.Approved && c.Answered.Digest == b.Digest
}
