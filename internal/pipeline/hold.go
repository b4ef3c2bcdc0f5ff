package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

const setHold = "hold"

// needsHold reports whether the policy holds a call until the commit, also if
// the call needs an approval before.
func needsHold(d perm.Decision) bool {
	return d.Effect() == perm.Hold || d.Has(setHold)
}

// reasonsFor returns the reasons of one decision that count for a call with
// this effect. From a milder decision only the reasons for the hold count.
func reasonsFor(d perm.Decision, effect perm.Effect) []perm.Reason {
	reasons := d.Reasons()
	switch {
	case d.Effect() == effect:
		return reasons
	case d.Effect() != perm.Hold || effect == perm.Deny:
		return nil
	}
	if len(reasons) == 0 {
		reasons = []perm.Reason{{Text: "the policy holds it until the commit"}}
	}
	for i := range reasons {
		reasons[i].Set = setHold
	}
	return reasons
}

// cannotWait says why a call cannot be held. It returns "" if it can, or if its
// transaction already commits.
func (a admitted) cannotWait(dynamic bool) string {
	class := a.class
	switch {
	case a.released != nil:
		return ""
	case dynamic:
		return "a call that runs cannot wait for it"
	case class != effect.Deferrable && class != effect.Pivot:
		return "only deferrable and pivot calls can wait for it, this one is " + string(class)
	}
	return ""
}

// hold ends a call as held until the commit. Its record contains all that the
// release needs, and is durable before the outcome says that the call is
// queued.
func (l *Pipeline) hold(ctx context.Context, f filtered, back func()) *tool.Outcome {
	p := f.permitted
	started, err := l.startedRecord(f)
	if err == nil {
		terms := p.terms()
		body := &record.Held{
			Started: *started, Idempotent: spec(p.tool).Hints.Idempotent, Masks: terms.Masks, Requires: terms.Requires,
		}
		//mutant:barrier
		w := revert.Write{Records: []revert.CallRecord{{Call: p.id, Body: body}}, Durable: true}
		var over *callstate.DeniedError
		over, err = l.charge(ctx, p, func() error { return l.p.Recorder.Write(context.WithoutCancel(ctx), w) })
		if over != nil {
			back()
			return l.budgetExceeded(ctx, p, over, &record.Dropped{Cause: "budget"})
		}
	}
	if err != nil {
		// The record can still be on the journal, so the transaction must not
		// commit.
		back()
		l.journalFailed.Store(true)
		out := l.outcome(p, tool.StatusFailed)
		out.Error = &tool.Problem{What: "the call was not queued", Why: "the journal could not take its record: " + err.Error()}
		return withText(out)
	}
	return withText(l.outcome(p, tool.StatusHeld))
}

// Release runs a held call when its transaction commits. The runtime does not
// ask the policy again. The policy decided on exactly this input, by the counts
// and labels of that moment, and an approver approved it if the policy asked.
// Release checks what can have changed since: the tool, the accesses of the
// call, and whether the session's grant is still valid. A call that cannot
// start has had no effect.
func (l *Pipeline) Release(ctx context.Context, c *revert.Call, turn int) tool.Outcome {
	p := permitted{admitted: admitted{
		id: c.Ref.Call, input: c.Held.Input, digest: c.Held.InputDigest, redaction: &redaction{input: c.Held.Input, known: l.known, pointers: c.Held.Redacted},
		sums: c.Held.Counts, released: c.Held, doubt: c.Phase == revert.PhaseUnknown, seq: c.Held.Sequence, pass: l.newFilterRun(turn, c.Held.Replaced),
	}, key: c.Held.Key, approval: c.Held.Approval}
	p.counted = l.p.Facts.Reserve(p.id, c.Held.Tool, p.sums).Session
	status := tool.StatusUnknown
	defer func() { l.p.Facts.Release(p.id, status) }()
	out := p.pass.over(ctx, l.release(ctx, p), p.redaction)
	status = out.Status
	if requeued(out) {
		out.Text += " It is still queued: committing again sends it."
		out.Error.Fix = "commit again once that is mended, or revert the call, which takes it out of the queue"
	}
	return out
}

// requeued reports whether a release is known to have had no effect. The call
// is then in the queue again.
func requeued(o tool.Outcome) bool {
	switch o.Status {
	case tool.StatusDenied, tool.StatusFailed, tool.StatusCancelled, tool.StatusTimeout:
		return true
	case tool.StatusDone, tool.StatusHeld, tool.StatusPending, tool.StatusInvalid, tool.StatusVerifyFailed, tool.StatusUnknown:
	}
	return false
}

func (l *Pipeline) release(ctx context.Context, p permitted) tool.Outcome {
	stage, err := l.readmit(&p.admitted)
	if err == nil {
		stage, err = "grant", l.stillGranted(ctx, p)
	}
	if err != nil {
		return *l.unreleased(ctx, p, stage, err)
	}
	f, end := l.filter(ctx, p)
	if end != nil {
		return *end
	}
	return l.run(ctx, f, func() {})
}

// readmit finds the tool of a held call again and recomputes its accesses. The
// decision does not cover another tool, or a tool that would touch other
// resources.
func (l *Pipeline) readmit(a *admitted) (stage string, err error) {
	ref := a.released.Tool
	t, ok := l.tools().Get(recordedName(ref))
	if !ok {
		return "tool", fmt.Errorf("there is no tool %s here: release it in the program that has it", recordedName(ref))
	}
	if t.Digest() != ref.Digest {
		return "tool", fmt.Errorf("the declaration of tool %s is not the one that was decided about: it is %s, and was %s", ref.Name, t.Digest(), ref.Digest)
	}
	if t.SettingsDigest() != ref.Settings {
		return "tool", fmt.Errorf("the settings of tool %s are not the ones that were decided about", ref.Name)
	}
	if why := t.NotConfiguredReason(); why != "" {
		return "tool", unconfigured(t, why)
	}
	in, err := internals.Admit(t, json.RawMessage(a.input), documentLimits(l.p.Limits))
	if err != nil {
		return "tool", err
	}
	a.tool, a.class, a.exact, a.bound = t, in.Class, in.Exact, in.Bound
	a.redaction.sensitive = spec(t).Hints.Sensitive
	now := make([]record.Access, 0, len(a.exact))
	for _, access := range a.exact {
		now = append(now, accessText(access))
	}
	if !slices.Equal(now, a.released.Access) {
		return "tool", fmt.Errorf("tool %s would touch something else than what was decided about", ref.Name)
	}
	return "", nil
}

func (l *Pipeline) stillGranted(ctx context.Context, p permitted) error {
	if err := l.p.Grant.Check(ctx); err != nil {
		return err
	}
	if why := p.tool.HiddenReason(l.p.Client); why != "" {
		return errors.New("the session does not see the tool any more: " + why)
	}
	for _, access := range p.asked() {
		if !l.p.Grant.Allows(access) {
			return fmt.Errorf("the session is no longer granted to %s", access)
		}
	}
	return nil
}

// unreleased ends a release before the call could start. The call stays in the
// queue, and its record says why.
func (l *Pipeline) unreleased(ctx context.Context, p permitted, stage string, why error) *tool.Outcome {
	out := tool.Outcome{
		Call: p.id, Txn: l.p.Recorder.Txn(), Tool: p.released.Tool.Name, Status: tool.StatusFailed, EffectClass: p.released.Class.OrPivot(),
		Changes: []tool.Change{}, Decision: decisionRecord(p.released.Decision),
	}
	out.Error = &tool.Problem{What: "the held call was not released", Why: why.Error()}
	if stage == "grant" || stage == "filter" {
		p.pass.denied(p, &callstate.DeniedError{})
		out.Status, out.Stage = tool.StatusDenied, stage
		out.Error.What = "the held call was denied by " + stage
	}
	if p.doubt { // an earlier release may have sent it
		out.Status, out.Stage = tool.StatusUnknown, ""
		return withText(out)
	}
	body := &record.Failed{Status: string(out.Status), Stage: out.Stage, Why: p.redaction.text(why.Error()), Proof: "not_started"}
	//mutant:barrier
	w := revert.Write{Records: []revert.CallRecord{{Call: p.id, Body: body}}, Durable: true}
	if err := l.p.Recorder.Write(context.WithoutCancel(ctx), w); err != nil {
		out.Error.Why += " (and the journal could not note it: " + err.Error() + ")"
		l.journalFailed.Store(true)
	}
	return withText(out)
}

// recallHeld fills in the outcome of a call that is in the queue, or was
// dropped from it.
func recallHeld(o *tool.Outcome, c *revert.Call) {
	switch {
	case c.Phase == revert.PhaseUnknown:
		o.Status, o.Error = tool.StatusUnknown, &tool.Problem{What: "the effect of the call cannot be told", Why: c.Unknown.Why}
	case c.Dropped != nil:
		o.Status = tool.StatusCancelled
		o.Error = &tool.Problem{What: "the call was held, and taken out of the queue", Why: droppedWhy(c.Dropped)}
	default:
		o.Status = tool.StatusHeld
	}
}

func droppedWhy(d *record.Dropped) string {
	why := map[string]string{
		"abort": "its transaction was reverted", "savepoint": "what came after a savepoint was reverted",
		"nest": "the transaction inside another that it was in was reverted", "revert": "it was reverted itself",
		"budget": "another call had spent its budget before",
	}[d.Cause]
	if d.By != "" {
		why += " by " + d.By
	}
	return why
}
