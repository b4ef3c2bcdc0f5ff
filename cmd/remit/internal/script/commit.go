package script

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// heldCall is a call of the script that the policy holds until the commit.
type heldCall struct {
	line int
	call call
}

// hold stores the line of a held call in the script.
func (r *runner) hold(line int, c call, id string) {
	if r.held == nil {
		r.held = map[string]heldCall{}
	}
	r.held[id] = heldCall{line, c}
}

// commit commits, and reports the outcome of each held call. If a release
// fails, the transaction stays open: the exit code and the summary say so.
func (r *runner) commit(ctx context.Context) (stopped bool, err error) {
	err = r.tx.Commit(ctx)
	for _, o := range r.tx.Released() {
		h := r.held[o.Call]
		o = r.withFix(ctx, o)
		if o.Error != nil && !o.Status.OK() {
			o.Error.Fix = r.resumeCommit(o)
		}
		r.sum.release(o)
		r.code = cli.Worst(r.code, cli.CallCode(o))
		r.results.released(h.line, h.call, o)
	}
	if gate := (*agent.CommitError)(nil); errors.As(err, &gate) {
		r.gated(gate)
		return false, nil
	}
	if errors.Is(err, agent.ErrNotReleased) {
		r.code = cli.Worst(r.code, notReleasedCode(err))
		return true, nil
	}
	if err == nil {
		r.code = cli.Worst(r.code, r.skipStep(ctx))
	}
	return false, err
}

// gated reports a commit that the policy did not permit.
func (r *runner) gated(gate *agent.CommitError) {
	now := commitState{State: "undecided", Why: gate.Why, Request: gate.Request}
	code := cli.ExitInternal
	switch {
	case errors.Is(gate, tool.ErrPending):
		now.State, code = "waits", cli.ExitPending
	case errors.Is(gate, tool.ErrDenied):
		now.State, code = "denied", cli.ExitDenied
		r.sum.NotReverted, r.sum.Held = gate.Report.NotReverted(), 0
		if errors.Is(gate, agent.ErrPartialRevert) {
			code = cli.ExitPartial
		}
	}
	r.sum.Commit, r.code = &now, cli.Worst(r.code, code)
	if now.State != "denied" && r.endStep > 0 {
		r.sum.NotRun, r.endStep = r.remaining(r.endStep), 0
	}
}

// notReleasedCode returns the code for a release without an outcome.
func notReleasedCode(err error) cli.ExitCode {
	var outcome *tool.CallError
	if errors.As(err, &outcome) {
		return cli.ExitOK // reported with its outcome
	}
	return cli.ExitInternal
}

// skipStep returns the code of a commit that skips a release with an unknown
// outcome.
func (r *runner) skipStep(ctx context.Context) cli.ExitCode {
	t, err := revert.Load(ctx, r.journal, r.tx.ID())
	if err != nil {
		return cli.ExitInternal
	}
	for _, c := range t.Calls {
		if c.Held != nil && c.Phase == revert.PhaseUnknown {
			return cli.ExitUnknown
		}
	}
	return cli.ExitOK
}

// resumeCommit says what to do about a call that was not released.
func (r *runner) resumeCommit(o tool.Outcome) string {
	where := &r.flags.Workspace
	again := r.flags.CommitHint(o.Txn)
	switch o.Status {
	case tool.StatusUnknown:
		return "record its outcome: " + where.Hint("resolve", o.Call, "applied|absent", "--why", "TEXT") + "; then go on: " + again
	case tool.StatusVerifyFailed:
		return "look at what it did; it is not sent again, and this goes on with the rest: " + again
	default:
		return "once that is mended: " + again + "; or go on without it: " + where.Hint("revert", o.Call) + " first"
	}
}

// queue loads the outbox of a transaction that was left open.
func (r *runner) queue(t *revert.Txn) {
	for i, c := range t.HeldCalls() {
		r.hold(i+1, call{tool: c.Tool.Name, args: c.Held.Input}, c.Ref.Call)
	}
}

// release counts the outcome of a call that was counted as held.
func (s *Summary) release(o tool.Outcome) {
	s.Held--
	s.Calls--
	s.count(o)
}
