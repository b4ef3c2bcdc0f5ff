package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// CanRevert reports whether the tool that made a call can be found, by its name
// and undo version, and declares a Revert. It makes a Pipeline a
// revert.ToolReverter.
func (l *Pipeline) CanRevert(_ context.Context, c revert.Call) (bool, string) {
	t, ok := internals.ForRevert(l.tools(), c.Tool)
	switch {
	case !ok && c.Tool.UndoVersion == "":
		return false, "tool " + c.Tool.Name + " has no revert of its own"
	case !ok:
		return false, fmt.Sprintf("tool %s with undo version %q is not among the tools here", c.Tool.Name, c.Tool.UndoVersion)
	case c.Started != nil && c.Started.AnsweredBy != "":
		return false, "filter " + c.Started.AnsweredBy + " answered in its place, so it did nothing"
	case spec(t).Revert == nil && spec(t).Provenance.Kind == provenance.MCP:
		return false, "the gateway's configuration has no \"undo\" for tool " + c.Tool.Name
	case spec(t).Revert == nil:
		return false, "tool " + c.Tool.Name + " declares no Revert"
	case c.Phase == revert.PhaseFailed && c.Failed.Proof != string(provenBack):
		return false, "the call had no effect"
	}
	return true, ""
}

// RevertCall runs the tool's Revert, under the rights that were journaled when
// the call was allowed. Its changes through handles are recorded under the undo
// call.
func (l *Pipeline) RevertCall(ctx context.Context, rec revert.Recorder, c revert.Call, undoCall, key string) (err error) {
	t, ok := internals.ForRevert(l.tools(), c.Tool)
	if !ok || spec(t).Revert == nil {
		return errors.New("the tool is gone")
	}
	right, err := rightOf(c)
	if err != nil {
		return err
	}
	live := callstate.New(callstate.Config{
		ID: undoCall, Key: key, Tool: c.Tool.Name, Settings: internals.Compiled(t).Settings, Principal: l.p.Principal, Recorder: rec, Roots: l.p.Roots, Drivers: l.p.Drivers, Files: fileLimits(l.p.Limits),
		Gate: func(_ context.Context, a perm.ResourceAccess) (callstate.Ruling, error) {
			if right.Allows(a) {
				return callstate.Ruling{Access: a, Decision: perm.NewDecision(perm.Allow, perm.Details{})}, nil
			}
			return callstate.Ruling{}, &callstate.DeniedError{Access: a, Stage: "grant", Why: "the undone call was not granted to " + a.String()}
		},
	})
	ctx, cancel := l.p.Host.WithTimeout(ctx, l.p.Limits.RevertTimeout, tool.ErrTimeout)
	defer cancel()
	rc := tool.RevertContext{
		Input: slices.Clone(c.Started.Input), Output: outputOf(c), ExecutedAt: c.Began, Notes: maps.Clone(c.Notes),
		Changes: slices.Clone(c.Changes), Key: c.Started.Key, RevertKey: key,
	}
	rc = internals.WithToolContext(rc, contexts.New(live))
	said := &redaction{input: c.Started.Input, known: l.known, sensitive: spec(t).Hints.Sensitive}
	defer func() { err = said.without(err) }()
	err = runRevert(ctx, spec(t).Revert, rc)
	if closed := l.close(ctx, live); closed != nil {
		live.Abort(context.WithoutCancel(ctx))
		return fmt.Errorf("%w: %w", revert.ErrRevertUnknown, closed)
	}
	if refused := live.Refused(); refused != nil && err == nil {
		err = refused
	}
	if err == nil {
		err = live.Prepare(ctx)
	}
	if err == nil {
		if err = live.Finish(context.WithoutCancel(ctx)); errors.Is(err, callstate.ErrOutcomeUnknown) {
			err = fmt.Errorf("%w: %w", revert.ErrRevertUnknown, err)
		}
		return err
	}
	live.Abort(context.WithoutCancel(ctx))
	return err
}

// without removes redacted values from the text of an error.
func (v *redaction) without(err error) error {
	if err == nil || v.text(err.Error()) == err.Error() {
		return err
	}
	return &scrubbedError{text: v.text(err.Error()), err: err}
}

// scrubbedError replaces the text of an error and keeps only its kind.
type scrubbedError struct {
	text string
	err  error
}

func (e *scrubbedError) Error() string        { return e.text }
func (e *scrubbedError) Is(target error) bool { return errors.Is(e.err, target) }

// runRevert runs a tool's Revert on its own goroutine. If Revert does not
// return in time or panics, the presence of the effect is unknown.
func runRevert(ctx context.Context, f tool.Revert, rc tool.RevertContext) error {
	back := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%w: %w", revert.ErrRevertUnknown, &callstate.PanicError{Value: p})
			}
			back <- err
		}()
		err = f(ctx, rc)
	}()
	select {
	case err := <-back:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-back: // in time, whichever case select chose
		return err
	default:
		return fmt.Errorf("%w: the tool's Revert did not return in time", revert.ErrRevertUnknown)
	}
}

func rightOf(c revert.Call) (perm.Set, error) {
	all := make([]perm.ResourceAccess, 0, len(c.Started.Right))
	for _, a := range c.Started.Right {
		all = append(all, perm.ResourceAccess{Action: perm.Action(a.Action), Resource: a.Resource, Method: a.Method})
	}
	return perm.NewSet(all...)
}

func outputOf(c revert.Call) json.RawMessage {
	if c.Done == nil {
		return json.RawMessage("null")
	}
	var r tool.Result
	if err := canon.Decode(c.Done.Output, &r); err != nil {
		return json.RawMessage("null")
	}
	return r.Output()
}

// Probe runs the tool's Verify to find whether the effect of an interrupted
// call is present. It makes a Pipeline a revert.Prober.
func (l *Pipeline) Probe(ctx context.Context, c revert.Call) (record.Verified, error) {
	t, ok := internals.ForRevert(l.tools(), c.Tool)
	if !ok {
		return record.Verified{}, revert.ErrToolNotFound
	}
	return l.lookAgain(ctx, t, c, verify.Recovery, nil), nil
}

// ProbeReverted runs the tool's Verify to find whether the effect of a reverted
// call is gone.
func (l *Pipeline) ProbeReverted(ctx context.Context, c revert.Call) record.Verified {
	t, ok := internals.ForRevert(l.tools(), c.Tool)
	if !ok {
		return record.Verified{}
	}
	return l.lookAgain(ctx, t, c, verify.AfterRevert, outputOf(c))
}

// lookAgain runs Verify on the recorded data of a call. If the policy redacted
// the input it cannot tell, because the recorded input is not the original.
func (l *Pipeline) lookAgain(ctx context.Context, t tool.Tool, c revert.Call, phase verify.Phase, output json.RawMessage) record.Verified {
	if spec(t).Verify == nil {
		return record.Verified{}
	}
	v := verify.CannotTell("the policy redacted what its Verify would look at")
	if len(c.Started.Redacted) == 0 {
		s := l.recordedSubject(c, phase)
		s.Output = output
		v = l.probe(ctx, t, s, c.Changes)
	}
	findings := v.Findings()
	for i := range findings {
		findings[i] = l.known.Scrub(findings[i])
	}
	return record.Verified{Phase: string(phase), Presence: v.Presence(), Findings: findings, Evidence: evidence(v)}
}

func (l *Pipeline) recordedSubject(c revert.Call, phase verify.Phase) verify.Subject {
	accesses := make([]perm.ResourceAccess, 0, len(c.Started.Access))
	for _, a := range c.Started.Access {
		accesses = append(accesses, perm.ResourceAccess{Action: perm.Action(a.Action), Resource: a.Resource, Method: a.Method})
	}
	s := verify.Subject{Phase: phase, Input: slices.Clone(c.Started.Input), Changes: viewSubject(c.Changes), Notes: maps.Clone(c.Notes)}
	if l.p.ResourceView != nil {
		s.Resources = l.p.ResourceView(accesses, c.Changes)
	}
	return s
}

func (l *Pipeline) probe(ctx context.Context, t tool.Tool, s verify.Subject, changes []effect.Change) verify.Verdict {
	ctx, cancel := l.p.Host.WithTimeout(ctx, timeToVerify(l.p.Limits, changes), tool.ErrTimeout)
	defer cancel()
	return verify.Run(ctx, spec(t).Verify, s)
}
