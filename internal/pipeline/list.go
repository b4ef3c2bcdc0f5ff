package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// VisibleTools returns the tools that the policy does not hide, sorted by name,
// and only the newest version of each. It omits tools that are not configured.
// It asks the policy about each tool with purpose list. Hiding keeps a model
// from useless attempts. It does not protect, because the runtime decides a
// call by name like any other. If the policy cannot be evaluated for a tool,
// the tool is omitted and the error says so.
func (l *Pipeline) VisibleTools(ctx context.Context) (shown []tool.Tool, err error) {
	if l == nil {
		return nil, nil
	}
	facts := l.p.Facts.Session()
	tools := l.tools()
	for _, name := range tools.Names() {
		t, _ := tools.Get(name) // Names lists only existing tools
		if t.NotConfiguredReason() != "" || t.HiddenReason(l.p.Client) != "" {
			continue
		}
		a := admitted{tool: t, class: t.Class(), input: []byte("null"), redaction: &redaction{}, counted: facts}
		hidden, why := l.hides(ctx, a, toolaccess.Call(name))
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

// PreviewDecision returns the effect that the policy would give a call of a
// tool with this input now. It runs and records nothing, and promises nothing:
// the call itself is decided anew. It returns Deny if the tool is hidden from
// the session, if the input is invalid, or if the policy hides or denies the
// call or one of its accesses. Otherwise it returns Ask or Allow as the policy
// decides. With an error it returns Deny.
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
		return perm.Deny, nil //nolint:nilerr // the caller gets this error when it makes the call
	}
	asked := a.asked()
	for _, access := range append([]perm.ResourceAccess{toolaccess.Call(name)}, asked...) {
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

// hides reports whether the policy hides the subject of an access from the
// session.
func (l *Pipeline) hides(ctx context.Context, a admitted, access perm.ResourceAccess) (bool, error) {
	req, err := l.request(a, access, false)
	if err != nil {
		return true, err
	}
	req.Purpose = perm.PurposeList
	d, err := l.ask(ctx, req)
	return len(d.Details().HideReasons) > 0, err
}
