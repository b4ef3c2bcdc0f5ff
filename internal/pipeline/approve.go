package pipeline

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
	"github.com/remit-dev/remit/tool"
)

// approved obtains an approval before the call runs: a remembered approval, the
// answer to the approval request of a pending call, or a new answer.
func (l *Pipeline) approved(ctx context.Context, p permitted, asked []perm.ResourceAccess) (_ permitted, end *tool.Outcome, err error) {
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

// approve sends an approval request to the approver. The answer is bound to
// everything that the request shows. The requesting principal cannot give it.
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
		return unanswered("a person must approve " + what + ", and there is no approver: " + reasonText(d))
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
	r, ok := answer.Remembered().Get()
	if (ok || ask.Remember.Scope == perm.RememberSession) && l.p.Memory != nil {
		// If this fails, the runtime asks the approver again next time.
		_ = l.p.Memory.Keep(ctx, ask, toolRef(a.tool, ""), a.digest, answer.By(), r)
	}
	return &record.Approval{By: answer.By(), Digest: ask.Digest}, nil
}

// firstOf names the first access of an approval request and counts the others.
// A walk requests folders before their content, so the caller could see this
// name in any case.
func firstOf(asked []perm.ResourceAccess) string {
	if n := len(asked) - 1; n > 0 {
		return fmt.Sprintf("%s and %d more", asked[0], n)
	}
	return asked[0].String()
}

// recalled finds a remembered approval. If the lookup fails, the runtime asks
// the approver again.
func (l *Pipeline) recalled(ctx context.Context, a admitted, asked []perm.ResourceAccess, d perm.Decision) *record.Approval {
	if l.p.Memory == nil {
		return nil
	}
	ask := l.question(a, asked, d)
	if r := a.resume; r != nil && !a.during && !r.Asked.During && (r.Answered != nil || r.Asked.Digest != ask.Digest) {
		return nil // only the answer to this call counts
	}
	approval, err := l.p.Memory.Recall(ctx, ask, a.digest)
	if err != nil || approval == nil || l.asks(approval.By) {
		return nil
	}
	approval.Digest = ask.Digest
	return approval
}

// asks reports whether an approver is the requesting principal or delegated to
// it. Neither can approve the call.
func (l *Pipeline) asks(by string) bool {
	return by == l.p.Principal.ID || slices.Contains(l.p.Principal.Chain, by)
}

// askSafely calls the approver on its own goroutine, so an approver that
// ignores its context does not block the call.
func askSafely(ctx context.Context, a ctxperm.Approver, ask ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
	type said struct {
		answer ctxperm.Answer
		err    error
	}
	back := make(chan said, 1)
	go func() {
		s := said{err: errors.New("the approver ended its goroutine")} // replaced when the approver answers
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

// refusedWhy says who rejected a call, and why if the answer has a reason.
func refusedWhy(by, why string) string {
	if by == "" {
		by = "the approver"
	}
	if why == "" {
		return "refused by " + by
	}
	return "refused by " + by + ": " + why
}

// question returns the approval request for a call. Its digest covers
// everything that the request shows, so an answer fits no other request.
func (l *Pipeline) question(a admitted, asked []perm.ResourceAccess, d perm.Decision) ctxperm.ApprovalRequest {
	ask := ctxperm.ApprovalRequest{
		Call: a.id, Txn: l.p.Recorder.Txn(), Session: l.p.Recorder.Session(), Tool: a.tool.Name(), ToolDigest: a.tool.Digest(), Settings: a.tool.SettingsDigest(),
		Principal: l.p.Principal.Clone(), Input: slices.Clone(a.redaction.shownInput()), Accesses: slices.Clone(asked),
		Reasons: d.Reasons(), Remember: a.remember(d), Revision: d.Revision(), Running: a.during,
		Earlier: a.redaction.text((&record.Asked{Approvals: a.before}).Earlier()),
	}
	parts := [][]byte{[]byte(ask.Txn), []byte(ask.Call), []byte(ask.ToolDigest), a.input, []byte(ask.Principal.ID), []byte(ask.Revision)}
	for _, access := range asked {
		parts = append(parts, []byte(access.String()))
	}
	if ask.Settings != "" {
		parts = append(parts, []byte("settings"), []byte(ask.Settings))
	}
	if ask.Remember.Scope != "" {
		parts = append(parts, []byte("remember"), []byte(ask.Remember.Scope))
		for _, key := range ask.Remember.Keys {
			parts = append(parts, []byte(key))
		}
	}
	if a.during {
		parts = append(parts, []byte("running"))
	}
	if a.program != nil {
		ask.Preview = a.redaction.text(a.preview)
		parts = append(parts, []byte("preview"), []byte(a.preview))
		for _, c := range a.program { // including text that is too long to show
			parts = append(parts, []byte(c.Kind), []byte(c.Before), []byte(c.After))
		}
	}
	ask.Digest = string(canon.Sum("remit/ask/v1", parts...))
	return ask
}

// remember returns what an approval of the call covers beside it. A later
// request of the call is about what it does as it runs, which its keys do not
// say. A key that a redaction changes is not recorded, because it would be the
// key of other values, too.
func (a admitted) remember(d perm.Decision) perm.Remember {
	r := d.Details().Remember
	if r.Scope == perm.RememberSession && (a.during || a.program != nil || !slices.Equal(a.redaction.texts(r.Keys), r.Keys)) {
		return perm.Remember{Scope: perm.RememberNever}
	}
	return r
}

// suspended ends a call that needs an approval as pending. For a call that was
// pending, it checks the answer first.
func (l *Pipeline) suspended(ctx context.Context, p permitted, asked []perm.ResourceAccess) (permitted, *tool.Outcome) {
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

func (l *Pipeline) stillWaiting(p permitted) *tool.Outcome {
	out := l.outcome(p, tool.StatusPending)
	out.Error = pendingProblem(p)
	return withText(out)
}

// changedSince says why an answer does not fit.
func (a admitted) changedSince() string {
	if a.program != nil {
		return "what the call would change now is not what was asked about: it does something else each time, or the tool, the policy, the input or the files have changed since"
	}
	return "what was asked is not what would run now: the tool, the policy or the input has changed since"
}

// checkPriorAnswer checks the answer to a pending call that the policy now
// allows. A rejection still counts, and an approval for other accesses does not
// allow the call.
func (l *Pipeline) checkPriorAnswer(p permitted, asked []perm.ResourceAccess) error {
	_, waiting, why := l.answer(p, l.question(p.admitted, asked, p.decision))
	if waiting || why == "" {
		return nil
	}
	return p.unapproved(why)
}

// unapproved denies a call that was pending. It names the accesses of the
// approval request, because the decision about the call itself can be an allow.
func (p permitted) unapproved(why string) *callstate.DeniedError {
	q := p.resume.Asked
	d := &callstate.DeniedError{Stage: "approver", Why: why, Question: q, Purpose: perm.Purpose(q.Purpose)}
	var asked []perm.ResourceAccess
	for _, a := range q.Access {
		asked = append(asked, perm.ResourceAccess{Action: perm.Action(a.Action), Resource: a.Resource, Method: a.Method})
	}
	if len(asked) == 0 { // the record has no accesses
		asked = p.asked()
	}
	if d.Access = asked[0]; q.During {
		d.Why = firstOf(asked) + ": " + why
	}
	return d
}

// decided returns the decision about the denied access as the journal records
// it.
func decided(d *callstate.DeniedError) perm.DecisionRecord {
	if d.Question != nil {
		if r := decisionRecord(d.Question.Decision); r != nil {
			return *r
		}
	}
	return d.Decision.Record()
}

// answer reports whether an approval covers exactly what a resumed call would
// run now.
func (l *Pipeline) answer(p permitted, ask ctxperm.ApprovalRequest) (approval *record.Approval, waiting bool, why string) {
	return l.judge(p.resume.Asked, p.resume.Answered, ask.Digest, p.changedSince())
}

// judge checks the answer to an approval request. It must be an approval, in
// time, by another principal, and for the request as it is now. If the request
// differs, judge returns changed as the reason.
func (l *Pipeline) judge(asked *record.Asked, answered *record.Answered, now, changed string) (approval *record.Approval, waiting bool, why string) {
	switch {
	case answered != nil && !answered.Approved:
		return nil, false, refusedWhy(answered.By, answered.Why)
	case asked.Digest != now:
		return nil, false, changed
	case l.p.Host.Now().After(asked.Expires):
		return nil, false, "no approval came in time"
	case answered == nil:
		return nil, true, ""
	case answered.Digest != asked.Digest:
		return nil, false, "the answer was given to another question"
	case answered.By == "" || l.asks(answered.By):
		return nil, false, "the one who asks cannot be the one who approves"
	}
	return &record.Approval{By: answered.By, Digest: asked.Digest}, false, ""
}

// asked records the approval request of a call that does not run, with a
// barrier. A later answer must find the request even if this process dies.
func (l *Pipeline) asked(ctx context.Context, p permitted, ask ctxperm.ApprovalRequest) *tool.Outcome {
	out := l.outcome(p, tool.StatusPending)
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
	l.reportPending(ask, body)
	return withText(out)
}

// reportPending reports an approval request that is on the journal to the
// listener.
func (l *Pipeline) reportPending(ask ctxperm.ApprovalRequest, as *record.Asked) {
	if l.p.Waiting != nil {
		ask.Expires = as.Expires
		l.p.Waiting(ask)
	}
}

// askedRecord returns the record of an approval request.
func (l *Pipeline) askedRecord(p permitted, ask ctxperm.ApprovalRequest, limit time.Duration) (*record.Asked, error) {
	as := p.redaction.decision(p.decision)
	if as.Remember = nil; ask.Remember.Scope != "" {
		as.Remember = &ask.Remember
	}
	decision, err := canon.Marshal(as)
	if err != nil {
		return nil, err
	}
	body := &record.Asked{
		Tool: toolRef(p.tool, ""), Input: p.input, InputDigest: p.digest, Decision: decision, During: p.during,
		Class: p.class, Declared: spec(p.tool).EffectClass != "",
		Digest: ask.Digest, Nest: l.p.Nest, Expires: l.p.Host.Now().Add(limit), Processes: l.processChains(p), Replaced: p.pass.replacements(),
		Approvals: p.before, Order: p.order,
	}
	if !p.during {
		body.Facts = p.facts()
	}
	if p.program != nil {
		body.Purpose, body.Preview = string(perm.PurposeApply), strings.ToValidUTF8(ask.Preview, "\uFFFD")
	}
	for _, a := range ask.Accesses {
		body.Access = append(body.Access, accessText(a))
	}
	return body, nil
}

// maxProcessChains bounds the processes that the record of one approval request names.
const maxProcessChains = 16

// processChains returns the processes that asked for the approval of the call, now and
// before. This process is last.
func (l *Pipeline) processChains(p permitted) (all []json.RawMessage) {
	if p.resume != nil && p.resume.Asked != nil {
		all = slices.Clone(p.resume.Asked.Processes)
	}
	return addProcess(all, l.p.ProcessChain)
}

// addProcess adds a process, unless it is nil or among them.
func addProcess(all []json.RawMessage, process json.RawMessage) []json.RawMessage {
	own, err := canon.Canonicalize(process, canon.DefaultLimits()) // the recorded ones are canonical
	same := func(known json.RawMessage) bool { return bytes.Equal(known, own) }
	if process == nil || err != nil || slices.ContainsFunc(all, same) {
		return all
	}
	return append(all[:min(len(all), maxProcessChains-1)], own)
}

// pendingProblem says why a call waits. It names no command that approves,
// because models read it.
func pendingProblem(p permitted) *tool.Problem {
	out := &tool.Problem{
		What: "the call waits for approval", Why: reasonText(p.decision),
		Fix: "a person answers it; then it goes on",
	}
	changes, before := p.program != nil, p.before
	if p.waitedInside() && !p.during { // the call has not run again: its approval request is on record
		changes, before = p.resume.Asked.Purpose != "", p.resume.Asked.Approvals
		if d := decisionRecord(p.resume.Asked.Decision); d != nil {
			out.Why = reasonsText(d.Reasons)
		}
	}
	if changes {
		out.Why = "a person must see what the call wants to change: " + out.Why
		out.Fix = "a person looks at what it wants to change, and answers; then it runs again"
	}
	if text := (&record.Asked{Approvals: before}).Earlier(); text != "" {
		out.Why += "; " + p.redaction.text(text)
	}
	return out
}
