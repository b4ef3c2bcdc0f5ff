package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// label adds the labels of a decision and of the tool's output to the session,
// before the access continues. The labels are set first, because they count for
// every later decision. Then they are made durable, so that no restart loses
// them. If a label cannot be recorded, the access is denied and the label
// stays: an extra label only makes the policy stricter.
func (l *Pipeline) label(ctx context.Context, a admitted, access perm.ResourceAccess, d perm.Decision) error {
	labels := d.Details().Labels
	if c := spec(a.tool).OutputContent; c != nil {
		labels = append(labels, c.Labels()...)
	}
	if err := l.labelled(ctx, a.id, labels, nil); err != nil {
		return &callstate.DeniedError{
			Access: access, Stage: "policy", Decision: d,
			Why: "the labels that it gives the session could not be written down: " + err.Error(),
		}
	}
	return nil
}

// labelled adds labels and requirements to the session, durably.
func (l *Pipeline) labelled(ctx context.Context, call string, labels, requires []string) error {
	labels, requires = l.p.Facts.Label(labels, requires)
	if len(labels)+len(requires) == 0 {
		return nil
	}
	if err := l.p.Recorder.Flush(context.WithoutCancel(ctx)); err != nil { // this record names the transaction
		return err
	}
	// In the session's own stream: a label remains when the call is reverted.
	rec := revert.NewRecorder(l.p.Recorder.Journal(), l.p.Host, l.p.Recorder.Session())
	body := &record.Labelled{Labels: append([]string{}, labels...), Requires: requires, By: record.CallRef{Txn: l.p.Recorder.Txn(), Call: call}}
	//mutant:barrier
	return rec.Write(context.WithoutCancel(ctx), revert.Write{Records: []revert.CallRecord{{Call: call, Body: body}}, Durable: true})
}

// labelsOf joins the labels of several decisions, in their order.
func labelsOf(ds []perm.Decision) []string {
	var all []string
	for _, d := range ds {
		all = append(all, d.Details().Labels...)
	}
	return all
}

// Bounds of the labels of one result, and of all labels of a session.
const (
	maxResultLabels = 64
	maxLabels       = 1000
)

var labelOK = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9_.:-]{0,63}$`)
})

// checkRaises returns an error for labels and requirements that are not valid.
func checkRaises(r tool.Result) error {
	if len(r.Labels) > maxResultLabels {
		return fmt.Errorf("it has %d labels; at most %d are valid", len(r.Labels), maxResultLabels)
	}
	for _, label := range r.Labels {
		if !labelOK().MatchString(label) {
			return errors.New("a label is lower-case letters, digits and _.:- of at most 64, from a letter or digit on")
		}
	}
	for _, need := range r.Requires {
		if !slices.Contains([]string{"verify", "revert", "sandbox", "preview"}, need) {
			return errors.New("it requires what nothing can meet; valid are verify, revert, sandbox, preview")
		}
	}
	return nil
}

// raise adds the labels and requirements of a result to the session before the
// result is on the journal. A reader of the result then finds them too. If that
// fails, the runtime does not deliver the result.
func (l *Pipeline) raise(ctx context.Context, d delivered) delivered {
	if !mayRaise(d.output) && !mayRaise(d.replaced) {
		return d
	}
	raw, given := cloneResult(d.output), cloneResult(d.replaced)
	labels, requires := merged(raw.Labels, given.Labels), merged(raw.Requires, given.Requires)
	if len(labels)+len(requires) == 0 {
		return d
	}
	err := l.raisable(labels)
	if err == nil {
		err = l.labelled(ctx, d.id, labels, requires)
	}
	if err != nil {
		d.replaced, d.by, d.violation = nil, nil, "what the result raises of the session could not be: "+err.Error()
	}
	return d
}

// mayRaise reports whether a result can hold labels or requirements. In
// canonical form a member has one spelling.
func mayRaise(output []byte) bool {
	return bytes.Contains(output, []byte(`"labels":`)) || bytes.Contains(output, []byte(`"requires":`))
}

func (l *Pipeline) raisable(labels []string) error {
	have, _ := l.p.Facts.Labels()
	for _, label := range labels {
		if l.known.Scrub(label) != label {
			return errors.New("a label holds the value of a secret")
		}
		if !slices.Contains(have, label) {
			have = append(have, label)
		}
	}
	if len(have) > maxLabels {
		return fmt.Errorf("the session would have more than %d labels", maxLabels)
	}
	return nil
}

// raisedByResult replaces the place of a rule in a requirement that a result
// raised.
const raisedByResult = "raised by a result"

// requiring adds to a decision the requirements that results raised for each
// call of the session.
func (l *Pipeline) requiring(d perm.Decision) perm.Decision {
	_, requires := l.p.Facts.Labels()
	if len(requires) == 0 {
		return d
	}
	details := d.Details()
	for _, need := range requires {
		details.Requires = append(details.Requires, perm.Reason{Text: need, At: raisedByResult, Set: "require"})
	}
	return perm.NewDecision(d.Effect(), details)
}
