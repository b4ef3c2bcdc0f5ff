package tool

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
)

// VisibleTools returns the tools that the policy does not hide, by name, and of several
// versions the newest; one that is not configured is not offered. It is asked about each with purpose list. Hiding keeps a model from trying in vain; it
// protects nothing, as a call by name is decided like any other. A tool that the
// policy cannot be asked about is not listed, and the error says so.
func (l *Pipeline) VisibleTools(ctx context.Context) (shown []Tool, err error) {
	if l == nil {
		return nil, nil
	}
	facts := l.p.Facts.Session()
	tools := l.tools()
	for _, name := range tools.Names() {
		t, _ := tools.Get(name) // Names lists what is there
		if t.NotConfiguredReason() != "" || t.HiddenReason(l.p.Client) != "" {
			continue
		}
		a := admitted{tool: t, class: t.Class(), input: []byte("null"), veil: &redaction{}, counted: facts}
		hidden, why := l.hides(ctx, a, callAccess(name))
		if why != nil {
			err = fmt.Errorf("whether tool %s is listed cannot be told: %w", name, why)
			continue
		}
		if !hidden {
			shown = append(shown, t)
		}
	}
	return shown, err
}

// PreviewDecision says what one call of a tool by name would meet as things are now, without making it: Deny where the session does not see the
// tool, the input is none of its, or the policy hides or denies the call or one of its accesses; Ask and Allow as the policy
// has it. Nothing is recorded and nothing is promised: the call itself is decided like any other. With an error it is Deny.
func (l *Pipeline) PreviewDecision(ctx context.Context, name string, input any) (perm.Effect, error) {
	if l == nil {
		return perm.Deny, nil
	}
	t, ok := l.tools().Get(name)
	if !ok || t.NotConfiguredReason() != "" || t.HiddenReason(l.p.Client) != "" {
		return perm.Deny, nil
	}
	a, err := l.accept(admitted{tool: t, counted: l.p.Facts.Session()}, input)
	if err != nil {
		return perm.Deny, nil //nolint:nilerr // a call that cannot begin is answered with that when somebody makes it
	}
	asked := a.asked()
	for _, access := range append([]perm.ResourceAccess{callAccess(name)}, asked...) {
		hidden, err := l.hides(ctx, a, access)
		if hidden || err != nil {
			return perm.Deny, err
		}
	}
	d, err := l.decide(ctx, a, asked, false)
	var denied *callstate.DeniedError
	switch {
	case errors.As(err, &denied):
		return perm.Deny, nil
	case err != nil:
		return perm.Deny, err
	}
	return d.Effect(), nil
}

// hides asks whether the policy keeps somebody from being shown what an access is about.
func (l *Pipeline) hides(ctx context.Context, a admitted, access perm.ResourceAccess) (bool, error) {
	req, err := l.request(a, access, false)
	if err != nil {
		return true, err
	}
	req.Purpose = perm.PurposeList
	d, err := l.ask(ctx, req)
	return len(d.Details().HideReasons) > 0, err
}
