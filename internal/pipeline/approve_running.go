package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// gate returns the function that decides accesses that a running call requests
// beyond its exact accesses: within the bound of the call, within the session's
// grant, by the same policy.
func (l *Pipeline) gate(a *admitted) callstate.AuthorizeFunc {
	return func(ctx context.Context, access perm.ResourceAccess) (callstate.Ruling, error) {
		r, err := perm.ParseResource(access.Resource)
		if err != nil {
			return callstate.Ruling{}, err
		}
		access.Resource = r.String()
		if !a.bound.Allows(access) {
			why := "the tool does not declare that it needs to " + access.String()
			return callstate.Ruling{}, &callstate.DeniedError{Access: access, Stage: "grant", Why: why}
		}
		d, err := l.decide(ctx, *a, []perm.ResourceAccess{access}, true)
		if err != nil {
			return callstate.Ruling{}, err
		}
		ruling := callstate.Ruling{Access: access, Decision: d, Terms: termsOf(d)}
		if ruling.Asks() {
			return ruling, nil
		}
		return ruling, l.label(ctx, *a, access, d)
	}
}

// approves returns the function that obtains an approval for accesses that a
// running call requests and the policy asks about. A remembered approval can
// cover each access. One approval request covers the others together.
func (l *Pipeline) approves(of *permitted) callstate.Approve {
	return func(ctx context.Context, live *callstate.Call, asked []callstate.Ruling) ([]*record.Approved, error) {
		p := *of
		p.during = true
		var done []*record.Approved
		var accesses []perm.ResourceAccess
		var decisions []perm.Decision
		for _, r := range asked {
			one := []perm.ResourceAccess{r.Access}
			if approval := l.recalled(ctx, p.admitted, one, r.Decision); approval != nil {
				done = append(done, approvedOf(approval, one))
				continue
			}
			accesses, decisions = append(accesses, r.Access), append(decisions, r.Decision)
		}
		if len(accesses) > 0 {
			p.decision = strictest(decisions)
			approval, err := l.inside(ctx, live, p, accesses)
			if err != nil {
				return nil, err
			}
			done = append(done, approvedOf(approval, accesses))
		}
		for _, r := range asked {
			if err := l.label(ctx, p.admitted, r.Access, r.Decision); err != nil {
				return nil, err
			}
		}
		return done, nil
	}
}

func approvedOf(approval *record.Approval, accesses []perm.ResourceAccess) *record.Approved {
	out := &record.Approved{Approval: *approval}
	for _, a := range accesses {
		out.Access = append(out.Access, accessText(a))
	}
	return out
}

// inside requests an approval of accesses that a running call requests. If an
// approver is available, it answers now. Otherwise a call without effect ends
// as pending and runs again after the approval. A call that can have had an
// effect waits until the answer is on the journal. If it cannot wait, it is
// denied.
func (l *Pipeline) inside(ctx context.Context, live *callstate.Call, p permitted, asked []perm.ResourceAccess) (*record.Approval, error) {
	p.before = l.approvals(p, live.Approved())
	ask := l.question(p.admitted, asked, p.decision)
	if approval := l.earlier(p, ask); approval != nil {
		return approval, nil
	}
	if l.p.Approver != nil || !l.p.Wait {
		limited, cancel := l.p.Host.WithTimeout(ctx, l.answerTime(p.tool), errNoAnswer)
		defer cancel()
		approval, err := l.approve(limited, p.admitted, asked, p.decision)
		if err != nil && ctx.Err() != nil { // the call ended, not the approver
			return nil, context.Cause(ctx)
		}
		return approval, err
	}
	if err := l.unkept(p.admitted, asked[0], p.decision, true, false); err != nil {
		return nil, err
	}
	if live.Suspend(ctx, &approvalPendingError{permitted: p, asked: asked}) {
		return nil, live.Waits()
	}
	if callstate.CannotWait(ctx) {
		why := "a person must approve it, and the call cannot wait for that: " + reasonText(p.decision)
		return nil, &callstate.DeniedError{Access: asked[0], Stage: "approver", Decision: p.decision, Why: why, Unanswered: true}
	}
	return l.waitFor(ctx, live, p, ask)
}

// earlier finds an approval of a call that runs again: from an earlier run, or
// the answer to the request that it waited with.
func (l *Pipeline) earlier(p permitted, ask ctxperm.ApprovalRequest) *record.Approval {
	if p.resume == nil {
		return nil
	}
	for _, a := range p.resume.Asked.Approvals {
		if a.Digest == ask.Digest {
			return &a.Approval
		}
	}
	approval, waiting, why := l.answer(p, ask)
	if waiting || why != "" {
		return nil
	}
	return approval
}

// errNoAnswer ends a wait for an answer.
var errNoAnswer = errors.New("no approver answered in time")

// answerTime returns how long a running call of the tool waits for one answer.
func (l *Pipeline) answerTime(t tool.Tool) time.Duration {
	if l.p.Limits.Answer > 0 {
		return l.p.Limits.Answer
	}
	return l.executeTime(t)
}

// lookForAnswer is the interval at which a waiting call looks for its answer.
const lookForAnswer = 100 * time.Millisecond

// waitFor records the approval request of a running call and waits for the
// answer. Another process can give it.
func (l *Pipeline) waitFor(ctx context.Context, live *callstate.Call, p permitted, ask ctxperm.ApprovalRequest) (*record.Approval, error) {
	limit := l.answerTime(p.tool)
	refuse := func(why string, unanswered bool) error {
		return &callstate.DeniedError{Access: ask.Accesses[0], Stage: "approver", Decision: p.decision, Why: why, Unanswered: unanswered}
	}
	body, err := l.askedRecord(p, ask, limit)
	if err == nil {
		body.Input = p.redaction.shownInput()
		err = live.Question(ctx, body)
	}
	if err != nil {
		return nil, refuse("a person must approve it, and the question could not be written down: "+err.Error(), true)
	}
	ask.InPlace = limit
	l.reportPending(ask, body)
	waiting, cancel := l.p.Host.WithTimeout(ctx, limit, errNoAnswer)
	defer cancel()
	if p.onRequest != nil {
		go p.onRequest(waiting, ask)
	}
	answered, err := l.awaited(waiting, p.id, ask.Digest)
	switch {
	case err == nil:
	case ctx.Err() != nil: // the call ended, not the wait
		return nil, context.Cause(ctx)
	case errors.Is(err, errNoAnswer):
		return nil, refuse(fmt.Sprintf("a person must approve that the call may %s, and no approver answered within %s: %s", firstOf(ask.Accesses), limit, reasonText(p.decision)), true)
	default:
		return nil, refuse("the answer cannot be read: "+err.Error(), true)
	}
	approval, _, why := l.judge(body, answered, ask.Digest, p.changedSince())
	if why != "" {
		return nil, refuse(why, false)
	}
	return approval, nil
}

// awaited returns the answer to an approval request, once there is one: a
// rejection if there is any, otherwise the newest answer.
func (l *Pipeline) awaited(ctx context.Context, call, question string) (*record.Answered, error) {
	q := journal.Query{Call: call, Kinds: []record.Kind{record.KindAnswered}}
	for {
		if err := l.p.Host.Point(ctx, "tool.answer"); err != nil {
			return nil, err
		}
		var answer *record.Answered
		for e, err := range l.p.Recorder.Journal().Entries(ctx, q) {
			if err == nil && context.Cause(ctx) == nil {
				var rec record.Record
				if rec, err = record.Unseal(e); err == nil {
					if b, ok := rec.Body.(*record.Answered); ok && b.Digest == question && (answer == nil || answer.Approved) {
						answer = b
					}
				}
			}
			if err != nil && context.Cause(ctx) == nil {
				return nil, err
			}
		}
		if answer != nil {
			return answer, nil
		}
		tick, stop := l.p.Host.WithTimeout(ctx, lookForAnswer, errTick)
		<-tick.Done()
		stop()
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
	}
}

var errTick = errors.New("look again")

// approvals returns the approvals that a call which now waits has obtained, in
// this run and before. When the call runs again, the runtime looks for
// remembered approvals again.
func (l *Pipeline) approvals(p permitted, during []*record.Approved) (all []record.Approved) {
	add := func(a record.Approved) {
		if a.Grant == "" && !slices.ContainsFunc(all, func(o record.Approved) bool { return o.Digest == a.Digest }) {
			all = append(all, a)
		}
	}
	if p.resume != nil {
		asked := p.resume.Asked
		for _, a := range asked.Approvals {
			add(a)
		}
		if a := l.earlier(p, ctxperm.ApprovalRequest{Digest: asked.Digest}); a != nil {
			add(record.Approved{Approval: *a, Access: asked.Access, Purpose: asked.Purpose})
		}
	}
	if p.approval != nil {
		add(*approvedOf(p.approval, p.asked()))
	}
	for _, a := range during {
		add(*a)
	}
	return all
}
