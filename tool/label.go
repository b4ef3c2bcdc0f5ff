package tool

import (
	"context"

	"github.com/remit-dev/remit/internal/line"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
)

// label gives the session the labels that a decision carries, before the access
// that earned them goes on. They count for every decision from here on, so they
// are set first; then they are durable, so that no restart forgets what somebody
// may have seen. A label that cannot be kept refuses the access, and stays set: a
// label too many only makes the policy stricter.
func (l *Line) label(ctx context.Context, a admitted, access perm.ResourceAccess, d perm.Decision) error {
	fresh := l.p.Facts.Label(d.Details().Labels)
	if len(fresh) == 0 {
		return nil
	}
	// In the session's own stream: a label outlives whatever becomes of the call.
	rec := revert.NewRecorder(l.p.Recorder.Journal(), l.p.Host, l.p.Recorder.Session())
	body := &revert.Labelled{Labels: fresh, By: revert.CallRef{Txn: l.p.Recorder.Txn(), Call: a.id}}
	//mutant:barrier
	err := rec.Write(context.WithoutCancel(ctx), revert.Write{Lines: []revert.Line{{Body: body}}, Durable: true})
	if err == nil {
		return nil
	}
	return &line.DeniedError{
		Access: access, Stage: "policy", Decision: d,
		Why: "the labels that it gives the session could not be written down: " + err.Error(),
	}
}

// labelsOf joins the labels of several decisions, in their order.
func labelsOf(ds []perm.Decision) []string {
	var all []string
	for _, d := range ds {
		all = append(all, d.Details().Labels...)
	}
	return all
}
