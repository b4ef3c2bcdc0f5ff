package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// shared returns the limits that also count calls of other sessions or
// processes. The runtime checks a call against them twice: at the decision, and
// by the position of its start record, because others can start meanwhile.
func shared(limits []perm.Limit) []perm.Limit {
	return slices.DeleteFunc(slices.Clone(limits), func(l perm.Limit) bool { return !l.Shared() })
}

// over says why a call under decision would exceed a limit, or returns "".
func (l *Pipeline) over(ctx context.Context, a admitted, limit perm.Limit, dynamic bool) (string, error) {
	if !limit.Shared() {
		return limit.Over(a.counted, a.tool.Name(), a.sums), nil
	}
	if dynamic {
		if a.released != nil { // counted when the call was held
			return "", nil
		}
		//mutant:none compares budgets, not versions
		if slices.ContainsFunc(a.charged, func(c perm.Limit) bool { return limit.Same(c) }) {
			return "", nil
		}
		return fmt.Sprintf("the budget %q counts per %s, and the rule gave it only once the call ran: let the rule hold for the call itself, too", limit.Budget, limit.Per), nil
	}
	facts, err := l.p.Facts.Spent(ctx, limit.Per)
	if err != nil {
		return "", err
	}
	return limit.Over(facts, a.tool.Name(), a.sums), nil
}

// charge calls write, which puts the start of a call on the journal. It returns
// a denial if the call exceeds a shared limit, or the number of uses of the
// grant, by the order of the journal.
func (l *Pipeline) charge(ctx context.Context, p permitted, write func() error) (*callstate.DeniedError, error) {
	over, err := l.chargeLimits(ctx, p, write)
	if over != nil || err != nil {
		return over, err
	}
	if err := l.p.Grant.CheckStarted(ctx, p.id); err != nil {
		return &callstate.DeniedError{Access: p.asked()[0], Stage: "grant", Why: err.Error()}, nil
	}
	return nil, nil
}

func (l *Pipeline) chargeLimits(ctx context.Context, p permitted, write func() error) (*callstate.DeniedError, error) {
	limits := shared(p.decision.Limits())
	var per []string
	for _, limit := range limits {
		per = merged(per, []string{limit.Per})
	}
	if len(limits) == 0 {
		return nil, write()
	}
	before, err := l.p.Facts.Charge(ctx, p.id, per, write)
	if err != nil {
		return nil, err
	}
	for _, limit := range limits {
		if over := limit.Over(before[slices.Index(per, limit.Per)], p.tool.Name(), p.sums); over != "" {
			return refusedBy(p.asked()[0], p.decision, perm.Reason{Text: over, At: limit.At, Set: "limit"}), nil
		}
	}
	return nil, nil
}

// refusedBy denies an access that the rules allow, for a reason that names a
// rule. The advice names the place of that rule.
func refusedBy(access perm.ResourceAccess, d perm.Decision, reason perm.Reason) *callstate.DeniedError {
	d = perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{reason}, Hints: d.Details().Hints, Revision: d.Revision()})
	return &callstate.DeniedError{Access: access, Stage: "policy", Decision: d, Why: reasonText(d)}
}

// budgetExceeded ends a call whose start is on the journal and whose code did not
// start. end is the record of that.
func (l *Pipeline) budgetExceeded(ctx context.Context, p permitted, d *callstate.DeniedError, end record.Body) *tool.Outcome {
	decision := p.redaction.decision(d.Decision)
	out := l.outcome(p, tool.StatusDenied)
	out.Stage, out.Decision = d.Stage, &decision
	out.Error = &tool.Problem{What: "the call was denied by " + d.Stage, Why: p.redaction.text(d.Why), Fix: howToAllow(d, p.tool)}
	if failed, is := end.(*record.Failed); is {
		access := accessText(d.Access)
		failed.Status, failed.Stage, failed.Why, failed.Proof, failed.Access = string(tool.StatusDenied), d.Stage, out.Error.Why, "not_started", &access
		failed.Decision, _ = canon.Marshal(decision) // plain data always marshals
	}
	//mutant:none a crash leaves a start without an end, and recovery finds that nothing ran
	w := revert.Write{Records: []revert.CallRecord{{Call: p.id, Body: end}}, Durable: true}
	if err := l.p.Recorder.Write(context.WithoutCancel(ctx), w); err != nil {
		out.Error.Why += " (and the journal could not note it: " + err.Error() + ")"
		l.journalFailed.Store(true)
	}
	return withText(out)
}
