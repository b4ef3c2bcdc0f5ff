package tool

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/line"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/record"
)

// terms are those of the decisions about a call; of one that is released, as they
// were when it was held.
func (p permitted) terms() line.Terms {
	if h := p.released; h != nil {
		return line.Terms{Masks: h.Masks, Requires: h.Requires}
	}
	return termsOf(p.decision)
}

// termsOf is what a decision attaches to the right that it gives.
func termsOf(d perm.Decision) line.Terms {
	details := d.Details()
	t := line.Terms{Masks: details.Masks}
	for _, r := range details.Requires {
		t.Requires = append(t.Requires, r.Text)
	}
	return t
}

// changeGate decides changes whose content is known, path by path: within what the
// call may need and the session holds, by the policy with purpose apply. A program
// has ended, or a handle has not begun, and nothing is real yet, so an approver can
// see the difference first.
func (l *Line) changeGate(p permitted) line.ChangeGate {
	return func(ctx context.Context, w line.Wanted) (_ *record.Approval, err error) {
		defer func() { naming(err) }()
		p := p
		p.program, p.git = w.Facts, map[string]*perm.GitFacts{}
		for _, f := range w.Facts {
			if f.Git != nil {
				p.git[f.Resource.Text] = f.Git
			}
		}
		for _, access := range w.Accesses {
			if !p.bound.Allows(access) {
				why := "the tool does not declare that it needs to " + access.String()
				return nil, &line.DeniedError{Access: access, Stage: "grant", Why: why}
			}
		}
		answers, err := l.decideEach(ctx, p.admitted, w.Accesses, true)
		if err != nil {
			return nil, err
		}
		d := strictest(answers)
		p.decision, w.Accesses = d, leading(w.Accesses, answers, d.Effect())
		approval, err := l.previewed(ctx, p, w)
		if err != nil {
			return nil, err
		}
		return approval, l.label(ctx, p.admitted, w.Accesses[0], d)
	}
}

// naming says in a refusal that it is about changes, and which of them.
func naming(err error) {
	var d *line.DeniedError
	if !errors.As(err, &d) {
		return
	}
	d.Purpose = perm.PurposeApply
	if d.Stage != "grant" {
		d.Why = d.Access.String() + ": " + d.Why
	}
}

// leading puts first what the decision is about: a refusal names the first access.
func leading(all []perm.ResourceAccess, answers []perm.Decision, e perm.Effect) []perm.ResourceAccess {
	var first, rest []perm.ResourceAccess
	for i, a := range all {
		if answers[i].Effect() == e {
			first = append(first, a)
		} else {
			rest = append(rest, a)
		}
	}
	return append(first, rest...)
}

// previewed has somebody approve what a program wants to change, where the policy
// asks for it. What must be seen is not approved by what was said of other calls.
func (l *Line) previewed(ctx context.Context, p permitted, w line.Wanted) (*record.Approval, error) {
	asks, shown := p.decision.Effect() == perm.Ask, w.Terms.And(termsOf(p.decision)).Demands("preview")
	waited := p.waitedWithChanges()
	if !asks && !shown && !waited {
		return nil, nil
	}
	p.preview = w.Preview()
	if waited {
		return l.answered(p, w.Accesses)
	}
	if !shown {
		if approval := l.recalled(ctx, p.admitted, w.Accesses, p.decision); approval != nil {
			return approval, nil
		}
	}
	if l.p.Approver != nil || !l.p.Wait {
		return l.approve(ctx, p.admitted, w.Accesses, p.decision)
	}
	if err := l.unkept(p.admitted, w.Accesses[0], p.decision, true, false); err != nil {
		return nil, err
	}
	return nil, &waitingError{permitted: p, asked: w.Accesses}
}

// waitedWithChanges reports whether the call has run before, and waited with what its
// program wanted to change. Nothing of that was kept: it runs again, and must want
// the same.
func (a admitted) waitedWithChanges() bool {
	return a.resume != nil && a.resume.Asked.Purpose == string(perm.PurposeApply)
}

// answered looks whether what a program wants to change now is what somebody
// approved.
func (l *Line) answered(p permitted, asked []perm.ResourceAccess) (*record.Approval, error) {
	approval, waiting, why := l.answer(p, l.question(p.admitted, asked, p.decision))
	if waiting {
		why = "nobody has approved it"
	}
	if why != "" {
		return nil, &line.DeniedError{Access: asked[0], Stage: "approver", Decision: p.decision, Why: why}
	}
	return approval, nil
}

// waitingError ends a call whose program wants to change what somebody must see, who
// is not there.
type waitingError struct {
	permitted
	asked []perm.ResourceAccess
}

func (e *waitingError) Unwrap() error { return line.ErrWaits }

func (e *waitingError) Error() string { return "somebody must approve it: " + reasonText(e.decision) }

// suspend lets a call wait whose program has run and wants to change something. What
// the program wrote is gone. A call that did more than its program did has left
// something behind, and cannot wait.
func (l *Line) suspend(ctx context.Context, i intended, w *waitingError) *Outcome {
	if i.live.Pending() != nil {
		return l.asked(ctx, w.permitted, l.question(w.admitted, w.asked, w.decision))
	}
	why := "somebody must approve it, nobody is there to ask, and a call that has changed something before cannot wait: " + reasonText(w.decision)
	return l.failed(ctx, i, mishap{err: &line.DeniedError{Access: w.asked[0], Stage: "approver", Decision: w.decision, Why: why}})
}

// goesOn lets a call run again that waited with what its program wanted to change,
// once somebody has approved that. What was approved before the program ran counts
// still, where it is still what is asked.
func (l *Line) goesOn(p permitted, asked []perm.ResourceAccess) (_ permitted, end *Outcome, err error) {
	before := p.resume.Asked.Approval
	_, waiting, why := l.answer(p, ctxperm.Ask{Digest: p.resume.Asked.Digest})
	if why == "" && p.decision.Effect() == perm.Ask && (before == nil || before.Digest != l.question(p.admitted, asked, p.decision).Digest) {
		why = p.changedSince()
	}
	switch {
	case why != "":
		return p, nil, &line.DeniedError{Access: asked[0], Stage: "approver", Decision: p.decision, Why: why}
	case waiting:
		return p, l.stillWaiting(p), nil
	}
	p.approval = before
	return p, nil, nil
}
