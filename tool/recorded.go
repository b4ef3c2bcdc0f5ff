package tool

import (
	"fmt"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/verify"
)

// Recorded answers a request from the journal, for a call id that a host gave
// before: the outcome that the call had, without running anything. It equals
// what was first returned but for Error.Fix, which is not kept; TakenBack and
// Undo say what became of the call since. Another tool or input than the first
// time is invalid; a call without an end, or whose result was never verified, is
// unknown.
func (l *Line) Recorded(c *revert.Call, req Request) Outcome {
	out := Outcome{Call: c.Ref.Call, Txn: c.Ref.Txn, Tool: c.Tool.Name, Changes: viewChanges(c.Changes)}
	t, _ := l.p.Tools.Get(c.Tool.Name)
	if !t.IsZero() {
		out.EffectClass = t.Class()
	}
	if why := l.otherCall(c, req); why != "" {
		return *Outcome{
			Call: c.Ref.Call, Txn: l.p.Recorder.Txn(), Tool: req.Tool, Status: StatusInvalid, Changes: []Change{},
			Error: &Problem{What: "the call id was used before", Why: why, Fix: "give each call an id of its own"},
		}.withText()
	}
	if c.Started != nil || c.Held != nil {
		out.EffectClass = c.Class()
	}
	out.recall(c, l.needsVerdict(t))
	out.Input = recordedInput(c)
	return *out.withText().without(out.Input)
}

// otherCall says why a request is not the one that the call answered. An
// invalid call kept no input; repeating its id is answered as it was.
func (l *Line) otherCall(c *revert.Call, req Request) string {
	if req.Tool != c.Tool.Name {
		return fmt.Sprintf("call id of a call of %q, not of %q", c.Tool.Name, req.Tool)
	}
	if c.Phase == revert.PhaseInvalid {
		return ""
	}
	if c.Phase == revert.PhaseErased {
		return "its records were erased, so that nobody can say whether this is the same call"
	}
	v, err := decodeInput(req.Input, l.p.Limits.document())
	if err != nil {
		return err.Error()
	}
	given := string(canon.Sum("remit/input/v1", v.Canonical()))
	for _, known := range []string{digestOf(c.Started), digestOf(c.Held), digestOf(c.Denied), digestOf(c.Asked)} {
		if known == given {
			return ""
		}
	}
	return "the input is not the one that the first call with this id had"
}

func digestOf(record any) string {
	switch r := record.(type) {
	case *revert.Started:
		if r != nil {
			return r.InputDigest
		}
	case *revert.Held:
		if r != nil {
			return r.InputDigest
		}
	case *revert.Denied:
		if r != nil {
			return r.InputDigest
		}
	case *revert.Asked:
		if r != nil {
			return r.InputDigest
		}
	}
	return ""
}

func recordedInput(c *revert.Call) []byte {
	switch {
	case c.Started != nil:
		return c.Started.Input
	case c.Held != nil:
		return c.Held.Input
	case c.Denied != nil:
		return c.Denied.Input
	case c.Asked != nil:
		return c.Asked.Input
	}
	return nil
}

// needsVerdict reports whether a result of the tool is shown to nobody before
// somebody looked.
func (l *Line) needsVerdict(t Tool) bool {
	if t.IsZero() || t.t.spec.Verify != nil || t.t.output != nil {
		return true
	}
	e, ok := l.engine().(interface{ Ensures() bool })
	return !ok || e.Ensures()
}

// recall fills in how the call ended.
func (o *Outcome) recall(c *revert.Call, needsVerdict bool) {
	if c.Held != nil {
		o.Decision = decisionRecord(c.Held.Decision)
		if c.Queued() || c.Dropped != nil {
			o.recallHeld(c)
			return
		}
	}
	switch c.Phase {
	case revert.PhaseInvalid:
		o.Status, o.Error = StatusInvalid, &Problem{What: "the call is not valid", Why: c.Invalid.Why}
	case revert.PhaseDenied:
		o.Status, o.Stage, o.Decision = StatusDenied, c.Denied.Stage, decisionRecord(c.Denied.Decision)
		o.Error = &Problem{What: "the call was denied by " + c.Denied.Stage, Why: c.Denied.Why}
	case revert.PhasePending:
		o.Status, o.Decision = StatusPending, decisionRecord(c.Asked.Decision)
		o.Error = &Problem{What: "the call waits for approval", Why: recordedReasons(o.Decision)}
	case revert.PhaseFailed:
		o.Status, o.Stage = Status(c.Failed.Status), c.Failed.Stage
		if c.Started != nil { // else it was held, and could not be released
			o.Decision = decisionRecord(c.Started.Decision)
		}
		o.Error = &Problem{What: whatOf(o.Status), Why: c.Failed.Why}
	case revert.PhaseDone:
		o.recallDone(c, needsVerdict)
	case revert.PhaseUnknown:
		o.Status, o.Decision = StatusUnknown, decisionRecord(c.Started.Decision)
		o.Error = &Problem{What: "the effect of the call cannot be told", Why: c.Unknown.Why}
	case revert.PhaseErased, revert.PhaseHeld, revert.PhaseDropped: // told before
		o.Status = StatusUnknown
	case revert.PhaseStarted:
		o.Status, o.Decision = StatusUnknown, decisionRecord(c.Started.Decision)
		o.Error = &Problem{What: "the call has no end on the journal", Why: "it is running in another process, or its process died"}
	}
	if c.Undo != nil && c.Undo.Reverted != nil {
		o.Undo, o.TakenBack = c.Undo.Reverted.Results, revert.TakenBack(c.Undo.Reverted.Results)
	}
}

func (o *Outcome) recallDone(c *revert.Call, needsVerdict bool) {
	o.Decision = decisionRecord(c.Started.Decision)
	var looked *revert.Verified
	for i := range c.Verified {
		if c.Verified[i].Phase != string(verify.AfterUndo) {
			looked = &c.Verified[i]
		}
	}
	switch {
	case looked == nil && needsVerdict && c.Decided == nil:
		o.Status = StatusUnknown
		o.Error = &Problem{What: "the result of the call was never verified", Why: "its process died before it could be"}
		return
	case looked == nil:
		o.Verdict = &Verdict{Is: verify.CannotTell.String()}
	default:
		o.Verdict = &Verdict{Is: looked.Verdict, Findings: looked.Findings}
	}
	if looked != nil && !looked.OK {
		o.Status, o.Error = StatusVerifyFailed, &Problem{What: "the call did not verify", Why: looked.Why}
		return
	}
	o.Status, o.Result = StatusDone, cloneResult(c.Done.Output)
	if !c.Done.Recovered {
		o.Output = o.Result.Output()
	}
}

// decisionRecord reads a journaled decision. One that cannot be read is shown
// as none: it decides nothing any more.
func decisionRecord(raw []byte) *perm.DecisionRecord {
	var d perm.DecisionRecord
	if len(raw) == 0 || canon.Decode(raw, &d) != nil {
		return nil
	}
	return &d
}

func recordedReasons(d *perm.DecisionRecord) string {
	if d == nil {
		return ""
	}
	return reasonsText(d.Reasons)
}
