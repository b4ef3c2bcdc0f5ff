package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/line"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
)

// approved has somebody approve the call before it runs: by what they said before of
// calls to come, by an answer to the question that it waited with, or now.
func (l *Line) approved(ctx context.Context, p permitted, asked []perm.ResourceAccess) (_ permitted, end *Outcome, err error) {
	if p.approval = l.recalled(ctx, p.admitted, asked, p.decision); p.approval != nil {
		return p, nil, nil
	}
	if p.resume != nil || (l.p.Approver == nil && l.p.Wait) {
		p, end := l.suspended(ctx, p, asked)
		return p, end, nil
	}
	p.approval, err = l.approve(ctx, p.admitted, asked, p.decision)
	return p, nil, err
}

// approve asks the approver. The answer is bound to everything that was shown,
// and the requesting principal cannot give it.
func (l *Line) approve(ctx context.Context, a admitted, asked []perm.ResourceAccess, d perm.Decision) (*record.Approval, error) {
	refuse := func(why string) (*record.Approval, error) {
		return nil, &line.DeniedError{Access: asked[0], Stage: "approver", Decision: d, Why: why}
	}
	if l.p.Approver == nil {
		return refuse("somebody must approve it, and nobody is there to ask: " + reasonText(d))
	}
	ask := l.question(a, asked, d)
	if err := l.p.Host.Point(ctx, "tool.approve"); err != nil {
		return refuse("asking was interrupted: " + err.Error())
	}
	answer, err := askSafely(ctx, l.p.Approver, ask)
	switch {
	case err != nil:
		return refuse("the approver did not answer: " + err.Error())
	case ctx.Err() != nil:
		return refuse("the approver did not answer in time")
	case !answer.Approved():
		return refuse("refused by " + nobody(answer.By()) + ": " + answer.Why())
	case l.asks(answer.By()):
		return refuse("the one who asks cannot be the one who approves")
	}
	if r, ok := answer.Remembered(); ok && l.p.Memory != nil {
		// Where it is not kept, somebody is asked again.
		_ = l.p.Memory.Keep(ctx, ask, toolRef(a.tool, ""), a.digest, answer.By(), r)
	}
	return &record.Approval{By: answer.By(), Digest: ask.Digest}, nil
}

// recalled finds an approval that somebody gave for calls to come. One that
// cannot be looked for is none: somebody is asked again.
func (l *Line) recalled(ctx context.Context, a admitted, asked []perm.ResourceAccess, d perm.Decision) *record.Approval {
	if l.p.Memory == nil {
		return nil
	}
	ask := l.question(a, asked, d)
	if r := a.resume; r != nil && (r.Answered != nil || r.Asked.Digest != ask.Digest) {
		return nil // what was said of this very call counts, and nothing else
	}
	approval, err := l.p.Memory.Recall(ctx, ask, a.digest)
	if err != nil || approval == nil || l.asks(approval.By) {
		return nil
	}
	approval.Digest = ask.Digest
	return approval
}

// asks reports whether somebody is the one who asks, or handed on what is asked
// for: neither can approve it.
func (l *Line) asks(by string) bool {
	return by == l.p.Principal.ID || slices.Contains(l.p.Principal.Chain, by)
}

func askSafely(ctx context.Context, a ctxperm.Approver, ask ctxperm.Ask) (answer ctxperm.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			answer, err = ctxperm.Answer{}, fmt.Errorf("the approver panicked (%T)", p)
		}
	}()
	return a.Approve(ctx, ask)
}

func nobody(by string) string {
	if by == "" {
		return "the approver"
	}
	return by
}

// question is what somebody is asked. Its digest covers everything that is
// shown, so that an answer fits nothing else.
func (l *Line) question(a admitted, asked []perm.ResourceAccess, d perm.Decision) ctxperm.Ask {
	ask := ctxperm.Ask{
		Call: a.id, Txn: l.p.Recorder.Txn(), Session: l.p.Recorder.Session(), Tool: a.tool.Name(), ToolDigest: a.tool.Digest(), Settings: a.tool.SettingsDigest(),
		Principal: l.p.Principal.Clone(), Input: slices.Clone(a.veil.shownInput()), Accesses: slices.Clone(asked),
		Reasons: d.Reasons(), Revision: d.Revision(),
	}
	parts := [][]byte{[]byte(ask.Txn), []byte(ask.Call), []byte(ask.ToolDigest), a.input, []byte(ask.Principal.ID), []byte(ask.Revision)}
	for _, access := range asked {
		parts = append(parts, []byte(access.String()))
	}
	if ask.Settings != "" {
		parts = append(parts, []byte("settings"), []byte(ask.Settings))
	}
	if a.program != nil {
		ask.Preview = a.veil.text(a.preview)
		parts = append(parts, []byte("preview"), []byte(a.preview))
		for _, c := range a.program { // also what is too long to be shown
			parts = append(parts, []byte(c.Kind), []byte(c.Before), []byte(c.After))
		}
	}
	ask.Digest = string(canon.Sum("remit/ask/v1", parts...))
	return ask
}

// suspended ends a call that somebody must approve, for now; or, for one that
// waited, looks at the answer.
func (l *Line) suspended(ctx context.Context, p permitted, asked []perm.ResourceAccess) (permitted, *Outcome) {
	ask := l.question(p.admitted, asked, p.decision)
	if p.resume == nil {
		return p, l.asked(ctx, p, ask)
	}
	approval, waiting, why := l.answer(p, ask)
	if waiting {
		return p, l.stillWaiting(p)
	}
	if why != "" {
		return p, l.denied(ctx, p, &line.DeniedError{Access: asked[0], Stage: "approver", Decision: p.decision, Why: why})
	}
	p.approval = approval
	return p, nil
}

func (l *Line) stillWaiting(p permitted) *Outcome {
	out := l.outcome(p, StatusPending)
	out.Error = pendingProblem(p)
	return out.withText()
}

// changedSince says why an answer does not fit.
func (a admitted) changedSince() string {
	if a.program != nil {
		return "what the call would change now is not what was asked about: it does something else each time, or the tool, the policy, the input or the files have changed since"
	}
	return "what was asked is not what would run now: the tool, the policy or the input has changed since"
}

// stands looks at a call that waited and that the policy allows by now. What
// somebody refused stays refused, and what was asked about something else is not
// what was allowed.
func (l *Line) stands(p permitted, asked []perm.ResourceAccess) error {
	_, waiting, why := l.answer(p, l.question(p.admitted, asked, p.decision))
	if waiting || why == "" {
		return nil
	}
	return &line.DeniedError{Access: asked[0], Stage: "approver", Decision: p.decision, Why: why}
}

// answer looks whether a resumed call was approved: in time, by somebody else,
// for exactly what would run now.
func (l *Line) answer(p permitted, ask ctxperm.Ask) (approval *record.Approval, waiting bool, why string) {
	asked, answered := p.resume.Asked, p.resume.Answered
	switch {
	case answered != nil && !answered.Approved:
		return nil, false, "refused by " + nobody(answered.By) + ": " + answered.Why
	case asked.Digest != ask.Digest:
		return nil, false, p.changedSince()
	case l.p.Host.Now().After(asked.Expires):
		return nil, false, "nobody approved it in time"
	case answered == nil:
		return nil, true, ""
	case answered.Digest != asked.Digest:
		return nil, false, "the answer was given to another question"
	case answered.By == "" || l.asks(answered.By):
		return nil, false, "the one who asks cannot be the one who approves"
	}
	return &record.Approval{By: answered.By, Digest: asked.Digest}, false, ""
}

// asked writes the question down. It has a barrier: whoever answers it later
// must find it, whatever becomes of this process.
func (l *Line) asked(ctx context.Context, p permitted, ask ctxperm.Ask) *Outcome {
	out := l.outcome(p, StatusPending)
	out.Error = pendingProblem(p)
	decision, err := canon.Marshal(p.veil.decision(p.decision))
	if err == nil {
		body := &record.Asked{
			Tool: toolRef(p.tool, ""), Input: p.input, InputDigest: p.digest, Decision: decision,
			Class: p.class, Declared: p.tool.t.spec.EffectClass != "",
			Digest: ask.Digest, Nest: l.p.Nest, Expires: l.p.Host.Now().Add(l.p.Limits.Asked), Replaced: p.pass.replacements(),
		}
		if p.program != nil {
			body.Purpose, body.Approval = string(perm.PurposeApply), p.approval
			body.Preview = strings.ToValidUTF8(ask.Preview, "\uFFFD")
		}
		for _, a := range ask.Accesses {
			body.Access = append(body.Access, accessText(a))
		}
		//mutant:barrier
		w := revert.Write{Lines: []revert.Line{{Call: p.id, Body: body}}, Durable: true}
		err = l.p.Recorder.Write(context.WithoutCancel(ctx), w)
	}
	if err != nil {
		return l.denied(ctx, p, fmt.Errorf("somebody must approve it, and the question could not be written down: %w", err))
	}
	return out.withText()
}

func pendingProblem(p permitted) *Problem {
	out := &Problem{
		What: "the call waits for approval", Why: reasonText(p.decision),
		Fix: "somebody else approves it: remit approve " + p.id + "; then it goes on: remit resume " + p.id,
	}
	if p.program != nil || p.waitedWithChanges() {
		out.Why = "somebody must see what the call wants to change"
		if p.decision.Effect() == perm.Ask {
			out.Why += ": " + reasonText(p.decision)
		}
		out.Fix = "somebody else looks at it: remit show " + p.id + "; approves what it says: remit approve " + p.id + " --question DIGEST; then the call runs again: remit resume " + p.id
	}
	return out
}
