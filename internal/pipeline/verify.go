package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// verify is step 8: the output schema, the tool's own Verify, the policy's
// postconditions. If one of them fails, the runtime reverts the call. The
// result is returned only after verify.
func (l *Pipeline) verify(ctx context.Context, s settled) tool.Outcome {
	ctx = lasting(ctx)
	verdict, looked, broken := l.runVerify(ctx, s)
	out := l.outcome(s.permitted, tool.StatusDone)
	out.Changes = viewChanges(s.live.Changes())
	out.Verdict = &tool.Verdict{Presence: verdict.Presence(), Findings: verdict.Findings()}
	if !looked {
		s.deliver(&out)
		return texted(out)
	}
	body := &record.Verified{
		Phase: string(verify.AfterCall), Presence: out.Verdict.Presence, OK: broken == "", Findings: s.redaction.texts(verdict.Findings()),
		Evidence: evidence(verdict), Why: s.redaction.text(broken),
	}
	// No barrier: a crash before this record is durable leaves a done call
	// whose result was never returned. It shows as never verified.
	err := l.p.Recorder.Write(ctx, revert.Write{Records: []revert.CallRecord{{Call: s.id, Body: body}}})
	if err != nil {
		l.journalFailed.Store(true)
	}
	if err != nil && broken == "" {
		broken = "the journal could not take the verdict: " + err.Error()
	}
	if broken != "" {
		return *l.verifyFailed(ctx, s, &out, broken)
	}
	s.deliver(&out)
	return texted(out)
}

// runVerify returns the verdict of the tool's Verify, whether a check ran at
// all, and the violation if there is one.
func (l *Pipeline) runVerify(ctx context.Context, s settled) (verdict verify.Verdict, looked bool, broken string) {
	if s.violation != "" {
		return verify.CannotTell(s.violation), true, s.violation
	}
	if err := fits(s.tool, s.output); err != nil {
		return verify.Absent(err.Error()), true, err.Error()
	}
	spec := spec(s.tool)
	if spec.Verify != nil && s.answer == nil { // code that did not run has nothing to verify
		looked = true
		timed, cancel := l.p.Host.WithTimeout(ctx, timeToVerify(l.p.Limits, s.live.Changes()), tool.ErrTimeout)
		verdict = verify.Run(timed, spec.Verify, l.subject(s.intended, slices.Clone(programOutput(s.output))))
		cancel()
		if verdict.Presence() != effect.PresenceApplied {
			return verdict, true, "the tool's Verify found: " + string(verdict.Presence()) + described(verdict)
		}
	}
	asked, why := l.postconditions(ctx, s)
	return verdict, looked || asked, why
}

// Time for a Verify beside Limits.VerifyTimeout: for each change, and for each
// amount of displaced bytes.
const (
	verifyChange = 20 * time.Millisecond
	verifyBytes  = 32 << 20 // one second
)

// timeToVerify bounds a Verify by the size of the changes.
func timeToVerify(l tool.Limits, changes []effect.Change) time.Duration {
	var kept int64
	for _, c := range changes {
		for _, b := range c.Blobs {
			kept += b.Size
		}
	}
	return l.VerifyTimeout + time.Duration(len(changes))*verifyChange + time.Duration(kept/verifyBytes)*time.Second
}

func described(v verify.Verdict) string {
	if len(v.Findings()) == 0 {
		return ""
	}
	return ", because " + strings.Join(v.Findings(), "; ")
}

// fits checks an encoded result against the tool's output schema, if it has
// one.
func fits(t tool.Tool, output []byte) error {
	return internals.Compiled(t).CheckOutput(canon.Member(output, "json"))
}

// postconditions evaluates the policy with purpose verify. It skips an engine
// that says that it has no postconditions. An engine that fails is a violation.
func (l *Pipeline) postconditions(ctx context.Context, s settled) (asked bool, broken string) {
	if !l.judgesResults() {
		return false, ""
	}
	accesses, output := s.exact, programOutput(s.output)
	if len(accesses) == 0 {
		accesses = []perm.ResourceAccess{toolaccess.Call(s.tool.Name())}
	}
	made := s.live.Changes()
	changes := changeFacts(made)
	if err := l.content(ctx, s, changes, made); err != nil {
		return true, "the policy's postconditions could not be looked at: " + err.Error()
	}
	ended := s.admitted
	ended.seen = l.nowFor(s.admitted) // the decision is about the session as it is now
	for _, access := range accesses {
		req, err := l.request(ended, access, false)
		if err != nil {
			return true, err.Error()
		}
		req.Purpose, req.Output, req.Changes = perm.PurposeVerify, output, changes
		d, err := l.ask(ctx, s.tool, &req)
		if err != nil {
			return true, "the policy's postconditions could not be looked at: " + err.Error()
		}
		if e := d.Details().FailedPostconditions; len(e) > 0 {
			return true, fmt.Sprintf("the policy's postcondition does not hold: %s (%s)", e[0].Text, e[0].At)
		}
		if err := l.labelled(ctx, s.id, d.Details().Labels, nil); err != nil {
			return true, "the labels that the policy gives the session for the result could not be written down: " + err.Error()
		}
	}
	return true, ""
}

// judgesResults reports whether the engine evaluates the results of calls, by
// postconditions or labels. It is true for an engine that does not say.
func (l *Pipeline) judgesResults() bool {
	ensures, says := l.engine().(interface{ Ensures() bool })
	labels, reads := l.engine().(interface{ LabelsResults() bool })
	return !says || ensures.Ensures() || reads && labels.LabelsResults()
}

func changeFacts(changes []effect.Change) []perm.ChangeFacts {
	out := make([]perm.ChangeFacts, 0, len(changes))
	for _, c := range changes {
		f := perm.ChangeFacts{Resource: changedResource(c.Resource), Kind: c.Kind}
		if c.Pre != effect.Absent {
			f.Before = string(c.Pre)
		}
		if c.Post != effect.Absent {
			f.After = string(c.Post)
		}
		out = append(out, f)
	}
	return out
}

// changedResource describes the resource of a change. Some changes have a name
// below the resources that a policy decides, such as a row of a table or an item
// that has no URL yet. Their facts are those of the nearest enclosing resource,
// with their own name as text. If no resource encloses the name, its kind is
// other. So a postcondition sees each change.
func changedResource(name string) perm.ResourceFacts {
	item := name
	if end := strings.IndexAny(name, "?#"); end >= 0 {
		item = name[:end]
	}
	for enclosing := range outwards(item) {
		if r, err := perm.ParseResource(enclosing); err == nil {
			f := r.Facts()
			f.Text = strings.ToValidUTF8(name, "\uFFFD")
			return f
		}
	}
	return perm.ResourceFacts{Kind: "other", Text: strings.ToValidUTF8(name, "\uFFFD")}
}

// outwards returns a name and the names of the resources that enclose it.
func outwards(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if yield(name) {
			revert.Ancestors(name)(yield)
		}
	}
}

// verifyFailed reverts a call that failed verification. Its result stays on the
// journal and is not returned.
func (l *Pipeline) verifyFailed(ctx context.Context, s settled, out *tool.Outcome, broken string) *tool.Outcome {
	out.Status = tool.StatusVerifyFailed
	out.Error = &tool.Problem{What: "the call did not verify", Why: broken}
	results, err := l.p.Reverter.RevertCall(ctx, l.p.Recorder, s.id, "verify_failed")
	out.RevertResults, out.Reverted = results, revert.RevertSummary(results)
	if err != nil {
		out.Reverted = "none"
		out.Error.Why += "; reverting it failed: " + err.Error()
	}
	if out.Reverted != "all" {
		out.Error.Fix = "not all of it could be reverted; look at what is left and revert again"
	}
	return textWithout(withText(*out), s.input)
}

func (l *Pipeline) subject(i intended, output json.RawMessage) verify.Subject {
	s := i.subject(output)
	if l.p.ResourceView != nil {
		s.Resources = l.p.ResourceView(i.exact, i.live.Changes())
	}
	return s
}

func (i intended) subject(output json.RawMessage) verify.Subject {
	return verify.Subject{
		Phase: verify.AfterCall, Input: slices.Clone(i.input), Output: output, Changes: viewSubject(i.live.Changes()), Notes: i.live.Notes(),
	}
}

func viewSubject(changes []effect.Change) []verify.Change {
	out := make([]verify.Change, 0, len(changes))
	for _, c := range changes {
		out = append(out, verify.Change{Resource: c.Resource, Kind: c.Kind, Before: string(c.Pre), After: string(c.Post)})
	}
	return out
}

func evidence(v verify.Verdict) string {
	parts := [][]byte{[]byte(v.Presence())}
	for _, f := range v.Findings() {
		parts = append(parts, []byte(f))
	}
	return string(canon.Sum("remit/evidence/v1", parts...))
}
