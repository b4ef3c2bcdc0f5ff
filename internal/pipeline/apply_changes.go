package pipeline

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// terms returns the obligations of the decisions about a call. For a released
// call they are those of the time when it was held.
func (p permitted) terms() callstate.Obligations {
	if h := p.released; h != nil {
		return callstate.Obligations{Masks: h.Masks, Requires: h.Requires}
	}
	return termsOf(p.decision)
}

// termsOf returns the obligations that a decision attaches to an allow.
func termsOf(d perm.Decision) callstate.Obligations {
	details := d.Details()
	t := callstate.Obligations{Masks: details.Masks}
	for _, r := range details.Requires {
		t.Requires = append(t.Requires, r.Text)
	}
	return t
}

// changeGate returns the function that decides changes whose content is known,
// path by path. Each change must lie within the bound of the call and the grant
// of the session, and the policy decides it with purpose apply. The program has
// ended or the handle has not begun, and nothing is applied yet, so an approver
// can see the diff first.
func (l *Pipeline) changeGate(of *permitted) callstate.AuthorizeChangesFunc {
	return func(ctx context.Context, live *callstate.Call, w callstate.ProposedChanges) (_ []*record.Approved, err error) {
		defer func() { naming(err) }()
		p := *of
		p.during, p.program, p.git = true, w.Facts, map[string]*perm.GitFacts{}
		for _, f := range w.Facts {
			if f.Git != nil {
				p.git[f.Resource.Text] = f.Git
			}
		}
		for _, access := range w.Accesses {
			if !p.bound.Allows(access) {
				why := "the tool does not declare that it needs to " + access.String()
				return nil, &callstate.DeniedError{Access: access, Stage: "grant", Why: why}
			}
		}
		answers, err := l.decideEach(ctx, p.admitted, w.Accesses, true)
		if err != nil {
			return nil, err
		}
		d := strictest(answers)
		p.decision, w.Accesses = d, leading(w.Accesses, answers, d.Effect())
		approval, err := l.previewed(ctx, live, p, w)
		if err != nil {
			return nil, err
		}
		if err := l.label(ctx, p.admitted, w.Accesses[0], d); err != nil || approval == nil {
			return nil, err
		}
		approved := approvedOf(approval, w.Accesses)
		approved.Purpose = string(perm.PurposeApply)
		return []*record.Approved{approved}, nil
	}
}

// naming adds to a denial that it is about changes, and which ones.
func naming(err error) {
	var d *callstate.DeniedError
	if !errors.As(err, &d) {
		return
	}
	d.Purpose = perm.PurposeApply
	if d.Stage != "grant" {
		d.Why = d.Access.String() + ": " + d.Why
	}
}

// leading puts the accesses that the decision is about first, because a denial
// names the first access.
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

// previewed requests an approval of the changes of a call if the policy asks. A
// remembered approval does not cover changes that the approver must see.
func (l *Pipeline) previewed(ctx context.Context, live *callstate.Call, p permitted, w callstate.ProposedChanges) (*record.Approval, error) {
	asks, shown := p.decision.Effect() == perm.Ask, w.Terms.And(termsOf(p.decision)).Demands("preview")
	waited := p.resume != nil && p.resume.Asked.Purpose == string(perm.PurposeApply)
	if !asks && !shown && !waited {
		return nil, nil
	}
	p.preview = w.Preview()
	if waited { // the runtime kept none of the changes, so the program must propose the same ones again
		approval := l.earlier(p, l.question(p.admitted, w.Accesses, p.decision))
		if approval == nil {
			return nil, &callstate.DeniedError{Access: w.Accesses[0], Stage: "approver", Decision: p.decision, Why: p.changedSince()}
		}
		return approval, nil
	}
	if !shown {
		if approval := l.recalled(ctx, p.admitted, w.Accesses, p.decision); approval != nil {
			return approval, nil
		}
	}
	return l.inside(ctx, live, p, w.Accesses)
}

// approvalPendingError ends a call that ran and waits for an approval.
type approvalPendingError struct {
	permitted
	asked []perm.ResourceAccess
}

func (e *approvalPendingError) Unwrap() error { return callstate.ErrWaits }

func (e *approvalPendingError) Error() string {
	return "a person must approve it: " + reasonText(e.decision)
}

// suspend ends a call without effect as pending. The writes of its program are
// discarded.
func (l *Pipeline) suspend(ctx context.Context, w *approvalPendingError) *tool.Outcome {
	return l.asked(ctx, w.permitted, l.question(w.admitted, w.asked, w.decision))
}

// waitedInside reports whether the call ran before and waited for an approval
// of accesses that it requested then. The runtime kept none of its work, so the
// call runs again.
func (a admitted) waitedInside() bool { return a.resume != nil && a.resume.Asked.During }

// resumePreviewed runs a call again after an approval of accesses that it
// requested while it ran. An approval from before the run still counts if the
// policy is the same and still asks.
func (l *Pipeline) resumePreviewed(ctx context.Context, p permitted, asked []perm.ResourceAccess) (_ permitted, end *tool.Outcome, err error) {
	_, waiting, why := l.answer(p, ctxperm.ApprovalRequest{Digest: p.resume.Asked.Digest})
	if d := decisionRecord(p.resume.Asked.Decision); why == "" && (d == nil || d.Revision != p.decision.Revision()) {
		why = p.changedSince()
	}
	switch {
	case why != "":
		return p, nil, p.unapproved(why)
	case waiting:
		return p, l.stillWaiting(p), nil
	case p.decision.Effect() != perm.Ask:
		return p, nil, nil
	}
	p.approval = l.earlier(p, l.question(p.admitted, asked, p.decision))
	if p.approval == nil {
		p.approval = l.recalled(ctx, p.admitted, asked, p.decision)
	}
	if p.approval == nil {
		return p, nil, &callstate.DeniedError{Access: asked[0], Stage: "approver", Decision: p.decision, Why: p.changedSince()}
	}
	return p, nil, nil
}
