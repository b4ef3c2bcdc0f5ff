package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
)

// approved has somebody approve the call before it runs: by what they said before of
// calls to come, by an answer to the question that it waited with, or now.
func (l *Pipeline) approved(ctx context.Context, p permitted, asked []perm.ResourceAccess) (_ permitted, end *Outcome, err error) {
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
func (l *Pipeline) approve(ctx context.Context, a admitted, asked []perm.ResourceAccess, d perm.Decision) (*record.Approval, error) {
	refuse := func(why string) (*record.Approval, error) {
		return nil, &callstate.DeniedError{Access: asked[0], Stage: "approver", Decision: d, Why: why}
	}
	unanswered := func(why string) (*record.Approval, error) {
		return nil, &callstate.DeniedError{Access: asked[0], Stage: "approver", Decision: d, Why: why, Unanswered: true}
	}
	what := "it"
	if a.during {
		what = "that the call may " + firstOf(asked)
	}
	if l.p.Approver == nil {
		return unanswered("a person must approve " + what + ", and nobody is there to ask: " + reasonText(d))
	}
	ask := l.question(a, asked, d)
	if err := l.p.Host.Point(ctx, "tool.approve"); err != nil {
		return unanswered("asking was interrupted: " + err.Error())
	}
	answer, err := askSafely(ctx, l.p.Approver, ask)
	switch {
	case ctx.Err() != nil:
		return unanswered("a person must approve " + what + ", and the approver did not answer in time: " + reasonText(d))
	case err != nil:
		return unanswered("the approver did not answer: " + err.Error())
	case !answer.Approved():
		return refuse(refusedWhy(answer.By(), answer.Why()))
	case l.asks(answer.By()):
		return refuse("the one who asks cannot be the one who approves")
	}
	if r, ok := answer.Remembered(); ok && l.p.Memory != nil {
		// Where it is not kept, somebody is asked again.
		_ = l.p.Memory.Keep(ctx, ask, toolRef(a.tool, ""), a.digest, answer.By(), r)
	}
	return &record.Approval{By: answer.By(), Digest: ask.Digest}, nil
}

// firstOf names the first of the accesses that a call asks about, and the number of the others. A walk asks about
// folders before what is in them, so the caller could see this name in any case.
func firstOf(asked []perm.ResourceAccess) string {
	if n := len(asked) - 1; n > 0 {
		return fmt.Sprintf("%s and %d more", asked[0], n)
	}
	return asked[0].String()
}

// recalled finds an approval that somebody gave for calls to come. One that
// cannot be looked for is none: somebody is asked again.
func (l *Pipeline) recalled(ctx context.Context, a admitted, asked []perm.ResourceAccess, d perm.Decision) *record.Approval {
	if l.p.Memory == nil {
		return nil
	}
	ask := l.question(a, asked, d)
	if r := a.resume; r != nil && !a.during && !r.Asked.During && (r.Answered != nil || r.Asked.Digest != ask.Digest) {
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
func (l *Pipeline) asks(by string) bool {
	return by == l.p.Principal.ID || slices.Contains(l.p.Principal.Chain, by)
}

// askSafely asks on a goroutine of its own, so that an approver which does not look at
// its context keeps nobody.
func askSafely(ctx context.Context, a ctxperm.Approver, ask ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
	type said struct {
		answer ctxperm.Answer
		err    error
	}
	back := make(chan said, 1)
	go func() {
		s := said{err: errors.New("the approver ended its goroutine")} // until it has answered
		defer func() {
			if p := recover(); p != nil {
				s = said{err: fmt.Errorf("the approver panicked (%T)", p)}
			}
			back <- s
		}()
		s.answer, s.err = a.Approve(ctx, ask)
	}()
	select {
	case s := <-back:
		return s.answer, s.err
	case <-ctx.Done():
		return ctxperm.Answer{}, context.Cause(ctx)
	}
}

// refusedWhy says who refused a call, and why where they said so.
func refusedWhy(by, why string) string {
	if by == "" {
		by = "the approver"
	}
	if why == "" {
		return "refused by " + by
	}
	return "refused by " + by + ": " + why
}

// question is what somebody is asked. Its digest covers everything that is
// shown, so that an answer fits nothing else.
func (l *Pipeline) question(a admitted, asked []perm.ResourceAccess, d perm.Decision) ctxperm.ApprovalRequest {
	ask := ctxperm.ApprovalRequest{
		Call: a.id, Txn: l.p.Recorder.Txn(), Session: l.p.Recorder.Session(), Tool: a.tool.Name(), ToolDigest: a.tool.Digest(), Settings: a.tool.SettingsDigest(),
		Principal: l.p.Principal.Clone(), Input: slices.Clone(a.veil.shownInput()), Accesses: slices.Clone(asked),
		Reasons: d.Reasons(), Revision: d.Revision(), Running: a.during,
		Earlier: a.veil.text((&record.Asked{Approvals: a.before}).Earlier()),
	}
	parts := [][]byte{[]byte(ask.Txn), []byte(ask.Call), []byte(ask.ToolDigest), a.input, []byte(ask.Principal.ID), []byte(ask.Revision)}
	for _, access := range asked {
		parts = append(parts, []byte(access.String()))
	}
	if ask.Settings != "" {
		parts = append(parts, []byte("settings"), []byte(ask.Settings))
	}
	if a.during {
		parts = append(parts, []byte("running"))
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
func (l *Pipeline) suspended(ctx context.Context, p permitted, asked []perm.ResourceAccess) (permitted, *Outcome) {
	ask := l.question(p.admitted, asked, p.decision)
	if p.resume == nil {
		return p, l.asked(ctx, p, ask)
	}
	approval, waiting, why := l.answer(p, ask)
	if waiting {
		return p, l.stillWaiting(p)
	}
	if why != "" {
		return p, l.denied(ctx, p, p.unapproved(why))
	}
	p.approval = approval
	return p, nil
}

func (l *Pipeline) stillWaiting(p permitted) *Outcome {
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

// checkPriorAnswer looks at a call that waited and that the policy allows by now. What
// somebody refused stays refused, and what was asked about something else is not
// what was allowed.
func (l *Pipeline) checkPriorAnswer(p permitted, asked []perm.ResourceAccess) error {
	_, waiting, why := l.answer(p, l.question(p.admitted, asked, p.decision))
	if waiting || why == "" {
		return nil
	}
	return p.unapproved(why)
}

// unapproved refuses a call that waited. It names the accesses that the question was about: what is decided about the
// call itself can be that it may begin.
func (p permitted) unapproved(why string) *callstate.DeniedError {
	q := p.resume.Asked
	d := &callstate.DeniedError{Stage: "approver", Why: why, Question: q, Purpose: perm.Purpose(q.Purpose)}
	var asked []perm.ResourceAccess
	for _, a := range q.Access {
		asked = append(asked, perm.ResourceAccess{Action: perm.Action(a.Action), Resource: a.Resource, Method: a.Method})
	}
	if len(asked) == 0 { // of a record that says less
		asked = p.asked()
	}
	if d.Access = asked[0]; q.During {
		d.Why = firstOf(asked) + ": " + why
	}
	return d
}

// decided is what the refused access was decided to be, as it is written down.
func decided(d *callstate.DeniedError) perm.DecisionRecord {
	if d.Question != nil {
		if r := decisionRecord(d.Question.Decision); r != nil {
			return *r
		}
	}
	return d.Decision.Record()
}

// answer looks whether a resumed call was approved for exactly what would run now.
func (l *Pipeline) answer(p permitted, ask ctxperm.ApprovalRequest) (approval *record.Approval, waiting bool, why string) {
	return l.judge(p.resume.Asked, p.resume.Answered, ask.Digest, p.changedSince())
}

// judge looks whether a question was answered with an approval: in time, by somebody
// else, and as it is asked now. It says changed if it is not.
func (l *Pipeline) judge(asked *record.Asked, answered *record.Answered, now, changed string) (approval *record.Approval, waiting bool, why string) {
	switch {
	case answered != nil && !answered.Approved:
		return nil, false, refusedWhy(answered.By, answered.Why)
	case asked.Digest != now:
		return nil, false, changed
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

// asked writes down what a call waits with that does not run. It has a barrier:
// whoever answers it later must find it, whatever becomes of this process.
func (l *Pipeline) asked(ctx context.Context, p permitted, ask ctxperm.ApprovalRequest) *Outcome {
	out := l.outcome(p, StatusPending)
	out.Error = pendingProblem(p)
	body, err := l.askedRecord(p, ask, l.p.Limits.ApprovalTimeout)
	if err == nil {
		//mutant:barrier
		w := revert.Write{Records: []revert.CallRecord{{Call: p.id, Body: body}}, Durable: true}
		err = l.p.Recorder.Write(context.WithoutCancel(ctx), w)
	}
	if err != nil {
		return l.denied(ctx, p, fmt.Errorf("a person must approve it, and the question could not be written down: %w", err))
	}
	l.tellWaiting(ask, body)
	return out.withText()
}

// tellWaiting tells of a question that is on the journal.
func (l *Pipeline) tellWaiting(ask ctxperm.ApprovalRequest, as *record.Asked) {
	if l.p.Waiting != nil {
		ask.Expires = as.Expires
		l.p.Waiting(ask)
	}
}

// askedRecord is a question as it is written down.
func (l *Pipeline) askedRecord(p permitted, ask ctxperm.ApprovalRequest, limit time.Duration) (*record.Asked, error) {
	decision, err := canon.Marshal(p.veil.decision(p.decision))
	if err != nil {
		return nil, err
	}
	body := &record.Asked{
		Tool: toolRef(p.tool, ""), Input: p.input, InputDigest: p.digest, Decision: decision, During: p.during,
		Class: p.class, Declared: p.tool.t.spec.EffectClass != "",
		Digest: ask.Digest, Nest: l.p.Nest, Expires: l.p.Host.Now().Add(limit), Askers: l.askers(p), Replaced: p.pass.replacements(),
		Approvals: p.before,
	}
	if p.program != nil {
		body.Purpose, body.Preview = string(perm.PurposeApply), strings.ToValidUTF8(ask.Preview, "\uFFFD")
	}
	for _, a := range ask.Accesses {
		body.Access = append(body.Access, accessText(a))
	}
	return body, nil
}

// maxAskers bounds the processes on record of one question.
const maxAskers = 16

// askers are the processes that asked what the call waits for, and what it waited for
// before, this process last.
func (l *Pipeline) askers(p permitted) (all []json.RawMessage) {
	if p.resume != nil && p.resume.Asked != nil {
		all = slices.Clone(p.resume.Asked.Askers)
	}
	own, err := canon.Canonicalize(l.p.Asker, canon.DefaultLimits()) // as those on record are
	same := func(known json.RawMessage) bool { return bytes.Equal(known, own) }
	if l.p.Asker == nil || err != nil || slices.ContainsFunc(all, same) {
		return all
	}
	return append(all[:min(len(all), maxAskers-1)], own)
}

// pendingProblem says why a call waits. It names no command that approves: models read it.
func pendingProblem(p permitted) *Problem {
	out := &Problem{
		What: "the call waits for approval", Why: reasonText(p.decision),
		Fix: "a person answers it; then it goes on",
	}
	changes, before := p.program != nil, p.before
	if p.waitedInside() && !p.during { // it has not run again: what it waits with is on record
		changes, before = p.resume.Asked.Purpose != "", p.resume.Asked.Approvals
		if d := decisionRecord(p.resume.Asked.Decision); d != nil {
			out.Why = reasonsText(d.Reasons)
		}
	}
	if changes {
		out.Why = "somebody must see what the call wants to change: " + out.Why
		out.Fix = "a person looks at what it wants to change, and answers; then it runs again"
	}
	if text := (&record.Asked{Approvals: before}).Earlier(); text != "" {
		out.Why += "; " + p.veil.text(text)
	}
	return out
}
