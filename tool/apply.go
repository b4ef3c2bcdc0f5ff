package tool

import (
	"context"
	"slices"

	"github.com/remit-dev/remit/internal/line"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
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

// changeGate decides what a program wants to change, path by path: within what the
// call may need and the session holds, by the policy with purpose apply. The
// program has ended, and nothing that it did is real yet, so somebody can be asked
// and take their time; they see the difference.
func (l *Line) changeGate(p permitted) line.ChangeGate {
	required := p.terms().Requires
	return func(ctx context.Context, accesses []perm.ResourceAccess, facts []perm.ChangeFacts, preview func() string) (*revert.Approval, error) {
		a := p.admitted
		a.program = facts
		for _, access := range accesses {
			if !a.bound.Allows(access) {
				why := "the tool does not declare that it needs to " + access.String()
				return nil, &line.DeniedError{Access: access, Stage: "grant", Why: why}
			}
		}
		d, err := l.decide(ctx, a, accesses, true)
		if err != nil {
			return nil, err
		}
		var approval *revert.Approval
		if d.Effect() == perm.Ask || slices.Contains(append(required, termsOf(d).Requires...), "preview") {
			a.preview = preview()
			if approval = l.recalled(ctx, a, accesses, d); approval == nil {
				if approval, err = l.approve(ctx, a, accesses, d); err != nil {
					return nil, err
				}
			}
		}
		return approval, l.label(ctx, a, accesses[0], d)
	}
}
