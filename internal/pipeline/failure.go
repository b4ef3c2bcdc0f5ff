package pipeline

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// noEffectProof says why a failed call is known to have no remaining effect. If
// it is empty there is no proof, and the outcome is unknown.
type noEffectProof string

const (
	noProof      noEffectProof = ""
	provenByTool noEffectProof = "no_effect" // the tool returned NoEffect
	provenPure   noEffectProof = "pure"      // the effect class is pure
	provenBack   noEffectProof = "reverted"  // its changes are its only effects, and they are reverted
	provenProbe  noEffectProof = "probe"     // its Verify found the effect absent
)

// callFailure describes the failure of a call after its code started.
type callFailure struct {
	err     error
	cause   error // why its context ended; nil: it did not
	running bool  // its code has not returned
	going   bool  // an operation through a handle has not returned
}

// failed ends a call whose code started and failed. If the recorded changes are
// its only effects, the runtime reverts them. If that cannot be shown, the
// outcome is unknown and the runtime reverts nothing.
func (l *Pipeline) failed(ctx context.Context, i intended, m callFailure) *tool.Outcome {
	err := m.err
	status, stage := causeStatus(err, m.cause)
	out := l.outcome(i.permitted, status)
	out.Stage, out.Changes = stage, viewChanges(i.live.Changes())
	out.Error = &tool.Problem{What: whatOf(status), Why: err.Error()}
	body := &record.Failed{Status: string(status), Stage: stage}
	around := ""
	if stage != "" { // the call was denied an access that it requested
		around = refusedInside(i, err, &out, body)
	}
	p := l.prove(ctx, i, m)
	if i.doubt && p != provenProbe {
		p = noProof // this attempt says nothing about the earlier one
	}
	if p == provenBack || p != noProof && len(i.live.Changes()) > 0 {
		results, tbErr := l.withdraw(ctx, i)
		out.RevertResults, out.Reverted = results, revert.RevertSummary(results)
		if tbErr != nil {
			out.Reverted = "none"
			out.Error.Why += "; taking its changes back failed: " + tbErr.Error()
		}
		if tbErr != nil || out.Reverted != "all" {
			p = noProof
		}
	}
	if p == noProof {
		out.Status, out.Stage = tool.StatusUnknown, ""
		out.Error.What = "the effect of the call cannot be told"
		out.Error.Fix = "look at what it may have touched; it is neither repeated nor undone by itself"
		if out.Reverted == "some" {
			out.Error.Fix = "look at what it may have touched: remit took back the changes that it saw, and cannot see all; it repeats nothing"
		}
		l.end(ctx, i, &out, &record.Unknown{Status: string(tool.StatusUnknown), Why: i.redaction.text(err.Error())})
		return textWithout(withText(out), i.input)
	}
	body.Why, body.Proof = i.redaction.text(err.Error()), string(p)
	l.end(ctx, i, &out, body)
	return textWithout(withTextAround(out, around), i.input)
}

// refusedInside fills in the decision about an access that a running call
// requested and did not get. It replaces the decision that let the call begin.
// It returns what the caller can do without the access.
func refusedInside(i intended, err error, out *tool.Outcome, body *record.Failed) (around string) {
	var d *callstate.DeniedError
	if !errors.As(err, &d) {
		return ""
	}
	decision := i.redaction.decision(d.Decision)
	out.Decision, out.Error.Fix = &decision, howToAllow(d, i.tool)
	access := accessText(d.Access)
	body.Access, body.Purpose = &access, string(d.Purpose)
	body.Decision, _ = canon.Marshal(decision) // plain data always marshals
	return d.Around
}

// withdraw reverts the changes of a failed call. It first writes the records
// that only the call holds, without a barrier: the barrier of the revert makes
// them durable.
func (l *Pipeline) withdraw(ctx context.Context, i intended) ([]effect.Result, error) {
	if posts := i.live.Posts(); len(posts) > 0 {
		w := revert.Write{Records: []revert.CallRecord{{Call: i.id, Body: &record.PostVersions{Posts: posts}}}}
		if err := l.p.Recorder.Write(ctx, w); err != nil {
			return nil, err
		}
	}
	return l.p.Reverter.RevertCall(ctx, l.p.Recorder, i.id, "failed")
}

func (l *Pipeline) prove(ctx context.Context, i intended, m callFailure) noEffectProof {
	var none *callstate.NoEffectError
	var blocked *callstate.BlockedError
	var composed *callstate.ComposedError
	parts := errors.As(m.err, &composed)
	s := spec(i.tool)
	switch {
	case m.going, errors.Is(m.err, callstate.ErrOutcomeUnknown): // an effect that can still arrive must not count as absent
		return noProof
	case s.Confinement == tool.Sandbox && !parts && errors.As(m.err, &none) && len(i.live.Changes()) == 0: // such as a server that cannot be started
		return provenByTool
	case s.Confinement == tool.Sandbox && i.tool.Class() != effect.Reversible && i.tool.Class() != effect.Pure:
		return noProof // it had effects beyond those that are reverted
	case s.Coverage == effect.Observed && len(i.live.Changes()) > 0 && i.class == effect.Pure:
		return noProof // other programs can have made these changes, and no rule let the call change anything: only a person reverts it
	case s.Coverage == effect.Observed && len(i.live.Changes()) > 0:
		return provenBack // within the roots; the report about other effects leaves the outcome unknown
	case s.Confinement == tool.Handles && i.class != effect.Pure && i.connects():
		return noProof // and so can a program that it ran
	case s.Confinement != tool.Trusted:
		if len(i.live.Changes()) == 0 {
			return provenByTool
		}
		return provenBack
	case parts && composed.Back && i.class != effect.Pure:
		return provenBack
	case parts && composed.Nothing, !parts && (errors.As(m.err, &none) || errors.As(m.err, &blocked)):
		return provenByTool
	case i.class == effect.Pure:
		return provenPure
	case m.running: // an absent effect can still appear
		return noProof
	}
	asked := l.subject(i, nil)
	asked.Phase = verify.Recovery
	if l.probe(ctx, i.tool, asked, i.live.Changes()).Presence() == effect.PresenceAbsent {
		return provenProbe
	}
	return noProof
}

// end writes the record that ends a call, and its start record if that is still
// unwritten. It has a barrier unless the call can have had no effect.
func (l *Pipeline) end(ctx context.Context, i intended, out *tool.Outcome, b record.Body) {
	//mutant:barrier
	w := revert.Write{Durable: len(i.live.Changes()) > 0 || barrierBeforeExecute(i.tool) || l.counts(i.permitted) || out.Status == tool.StatusDenied}
	w.Records = append(i.live.Start(), revert.CallRecord{Call: i.id, Body: b})
	if err := l.p.Recorder.Write(ctx, w); err != nil {
		out.Error.Why += " (and the journal could not note it: " + err.Error() + ")"
		l.journalFailed.Store(true)
		if w.Durable && out.Status != tool.StatusDenied {
			out.Status = tool.StatusUnknown
		}
	}
}

func whatOf(s tool.Status) string {
	switch s {
	case tool.StatusDenied:
		return "the call was denied while it ran"
	case tool.StatusTimeout:
		return "the call's time was up"
	case tool.StatusCancelled:
		return "the call was cancelled"
	case tool.StatusDone, tool.StatusHeld, tool.StatusPending, tool.StatusInvalid, tool.StatusFailed, tool.StatusVerifyFailed, tool.StatusUnknown:
	}
	return "the tool failed"
}

func deniedStage(err error) string {
	var d *callstate.DeniedError
	if errors.As(err, &d) {
		return d.Stage
	}
	return "tool"
}
