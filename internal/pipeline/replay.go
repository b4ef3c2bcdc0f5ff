package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// RecordedOutcome answers a request from the journal, for a call ID that the
// host program used before. It returns the outcome of that call and runs
// nothing. It equals the first returned outcome except for Error.Fix, which is
// not recorded. Reverted and RevertResults say what was reverted since. A
// request with another tool or input is invalid. A call without an end, or with
// a result that was never verified, is unknown.
func (l *Pipeline) RecordedOutcome(c *revert.Call, req Request) tool.Outcome {
	if why := l.otherCall(c, req); why != "" {
		return *withText(tool.Outcome{
			Call: c.Ref.Call, Txn: l.p.Recorder.Txn(), Tool: req.Tool, Status: tool.StatusInvalid, Changes: []tool.Change{},
			Error: &tool.Problem{What: "the call id was used before", Why: why, Fix: "give each call an id of its own"},
		})
	}
	return l.Outcome(c)
}

// Outcome returns what RecordedOutcome returns for a request by the call's own
// ID.
func (l *Pipeline) Outcome(c *revert.Call) tool.Outcome {
	out := tool.Outcome{Call: c.Ref.Call, Txn: c.Ref.Txn, Tool: c.Tool.Name, Changes: viewChanges(c.Changes)}
	t, _ := l.tools().Get(recordedName(c.Tool))
	if !t.IsZero() {
		out.EffectClass = t.Class()
	}
	switch {
	case c.Started != nil || c.Held != nil:
		out.EffectClass = c.Class()
	case c.Denied != nil && c.Denied.Class != "":
		out.EffectClass = c.Denied.Class
	case c.Asked != nil && c.Asked.Class != "":
		out.EffectClass = c.Asked.Class
	}
	recall(&out, c, l.needsVerdict(t, c))
	filteredOutcome(&out, c)
	out.Input = c.Input()
	out.Redacted = redactedOutcome(c)
	told := withText(out)
	if quotes(out, c) {
		told = textWithout(told, out.Input)
	}
	if t.Digest() == c.Tool.Digest && c.Phase != revert.PhaseInvalid {
		told.Text += notice(t)
	}
	return *told
}

// quotes reports whether the text may repeat an error, from which the values of
// arguments were removed when it was first returned. A result is returned
// unchanged.
func quotes(o tool.Outcome, c *revert.Call) bool {
	switch o.Status {
	case tool.StatusDone, tool.StatusHeld, tool.StatusPending, tool.StatusInvalid:
		return false
	case tool.StatusDenied:
		return c.Denied == nil || c.Denied.Stage == "grant" || c.Denied.Stage == "filter"
	case tool.StatusFailed, tool.StatusVerifyFailed, tool.StatusCancelled, tool.StatusTimeout, tool.StatusUnknown:
	}
	return true
}

// otherCall says why a request differs from the recorded call. An invalid call
// has no recorded input, so a repeated ID gets its outcome.
func (l *Pipeline) otherCall(c *revert.Call, req Request) string {
	if req.Tool != c.Tool.Name && req.Tool != recordedName(c.Tool) {
		return fmt.Sprintf("call id of a call of %q, not of %q", recordedName(c.Tool), req.Tool)
	}
	if c.Phase == revert.PhaseInvalid {
		return ""
	}
	if c.Phase == revert.PhaseErased {
		return "its records were erased, so it is unknown whether this is the same call"
	}
	v, text, err := toolaccess.Decode(req.Input, documentLimits(l.p.Limits))
	if err != nil {
		return err.Error()
	}
	known := []string{string(canon.Sum("remit/input/v1", text))}
	if t, ok := l.tools().Get(recordedName(c.Tool)); ok {
		if full, err := t.NormalizeInput(v.Canonical()); err == nil { // with the same defaults as the first input
			known = append(known, string(canon.Sum("remit/input/v1", full)))
		}
	}
	if !slices.Contains(known, deliveredDigest(c)) {
		return "the input is not the one that the first call with this id had"
	}
	return ""
}

// deliveredDigest returns the digest of the input that the caller gave, even if a
// filter replaced it.
func deliveredDigest(c *revert.Call) string {
	digest, replaced := "", []record.Replacement(nil)
	switch {
	case c.Started != nil:
		digest, replaced = c.Started.InputDigest, c.Started.Replaced
	case c.Held != nil:
		digest, replaced = c.Held.InputDigest, c.Held.Replaced
	case c.Denied != nil:
		digest, replaced = c.Denied.InputDigest, c.Denied.Replaced
	case c.Asked != nil:
		digest, replaced = c.Asked.InputDigest, c.Asked.Replaced
	}
	if len(replaced) > 0 {
		return replaced[0].Original
	}
	return digest
}

// redactedOutcome reports whether the records of a call hide a part of it.
func redactedOutcome(c *revert.Call) bool {
	switch {
	case c.Started != nil:
		return len(c.Started.Redacted) > 0
	case c.Held != nil:
		return len(c.Held.Redacted) > 0
	}
	in, digest := c.Input(), ""
	switch {
	case c.Denied != nil:
		digest = c.Denied.InputDigest
	case c.Asked != nil:
		digest = c.Asked.InputDigest
	}
	return in != nil && string(canon.Sum("remit/input/v1", in)) != digest
}

// filteredOutcome fills in what the filters did with the call.
func filteredOutcome(o *tool.Outcome, c *revert.Call) {
	switch {
	case c.Denied != nil:
		o.Filter, o.EndLoop = c.Denied.Filter, c.Denied.EndLoop
	case c.Started != nil:
		o.Filter, o.EndLoop = c.Started.AnsweredBy, c.Started.Ends
	case c.Held != nil:
		o.EndLoop = c.Held.Ends
	}
	if c.Done != nil {
		o.EndLoop = cmp.Or(c.Done.Ends, o.EndLoop)
	}
}

// needsVerdict reports whether a result of the tool must be verified before it
// is returned.
func (l *Pipeline) needsVerdict(t tool.Tool, c *revert.Call) bool {
	answered := c.Started != nil && c.Started.AnsweredBy != "" // which was checked against the schema before
	switch {
	case t.IsZero(), c.Done != nil && c.Done.Undelivered != "":
		return true
	case answered:
	case spec(t).Verify != nil, internals.Compiled(t).Output != nil && !l.fitted(t, c):
		return true
	}
	return l.judgesResults()
}

// fitted reports whether the recorded output fits the output schema that the
// call was made with. No record says that this was checked.
func (l *Pipeline) fitted(t tool.Tool, c *revert.Call) bool {
	return c.Done != nil && c.Tool.Digest == t.Digest() && fits(t, c.Done.Output) == nil
}

// recall fills in how the call ended.
func recall(o *tool.Outcome, c *revert.Call, needsVerdict bool) {
	if c.Held != nil {
		o.Decision = decisionRecord(c.Held.Decision)
		if c.IsHeld() || c.Dropped != nil {
			recallHeld(o, c)
			return
		}
	}
	switch c.Phase {
	case revert.PhaseInvalid:
		o.Status, o.Error = tool.StatusInvalid, &tool.Problem{What: "the call is not valid", Why: c.Invalid.Why}
	case revert.PhaseDenied:
		o.Status, o.Stage, o.Decision = deniedStatus(c.Denied.Timeout), c.Denied.Stage, decisionRecord(c.Denied.Decision)
		o.Error = &tool.Problem{What: deniedWhat(c.Denied.Stage, c.Denied.Timeout), Why: c.Denied.Why}
	case revert.PhasePending:
		o.Status, o.Decision = tool.StatusPending, decisionRecord(c.Asked.Decision)
		o.Error = &tool.Problem{What: "the call waits for approval", Why: recordedReasons(o.Decision)}
	case revert.PhaseFailed:
		o.Status, o.Stage = tool.Status(c.Failed.Status), c.Failed.Stage
		if c.Started != nil { // otherwise it was held, and could not be released
			o.Decision = decisionRecord(c.Started.Decision)
		}
		o.Error = &tool.Problem{What: whatOf(o.Status), Why: c.Failed.Why}
	case revert.PhaseDone:
		recallDone(o, c, needsVerdict)
	case revert.PhaseUnknown:
		o.Status, o.Decision = tool.StatusUnknown, decisionRecord(c.Started.Decision)
		o.Error = &tool.Problem{What: "the effect of the call cannot be told", Why: c.Unknown.Why}
	case revert.PhaseErased, revert.PhaseHeld, revert.PhaseDropped: // handled before
		o.Status = tool.StatusUnknown
	case revert.PhaseStarted:
		o.Status, o.Decision = tool.StatusUnknown, decisionRecord(c.Started.Decision)
		o.Error = &tool.Problem{What: "the call has no end on the journal", Why: "it is running in another process, or its process died"}
	}
	if c.Reversal != nil && c.Reversal.Reverted != nil {
		o.RevertResults, o.Reverted = c.Reversal.Reverted.Results, c.RevertSummary()
	}
}

func recallDone(o *tool.Outcome, c *revert.Call, needsVerdict bool) {
	o.Decision = decisionRecord(c.Started.Decision)
	var looked *record.Verified
	for i := range c.Verified {
		if c.Verified[i].Phase != string(verify.AfterRevert) {
			looked = &c.Verified[i]
		}
	}
	switch {
	case looked == nil && needsVerdict && c.Decided == nil:
		o.Status = tool.StatusUnknown
		o.Error = &tool.Problem{What: "the result of the call was never verified", Why: "its process died before it could be"}
		return
	case looked == nil:
		o.Verdict = &tool.Verdict{Presence: effect.PresenceUnknown}
	default:
		o.Verdict = &tool.Verdict{Presence: looked.Presence, Findings: looked.Findings}
	}
	if looked != nil && !looked.OK {
		o.Status, o.Error = tool.StatusVerifyFailed, &tool.Problem{What: "the call did not verify", Why: looked.Why}
		return
	}
	o.Status, o.Result = tool.StatusDone, cloneResult(c.Done.Output)
	if c.Done.Delivered != nil {
		o.Result = cloneResult(c.Done.Delivered)
	}
	if !c.Done.Recovered {
		o.Output = o.Result.Output()
	}
}

// decisionRecord parses a journaled decision. It returns nil for one that
// cannot be parsed, because the decision no longer decides anything.
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
