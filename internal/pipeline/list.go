package pipeline

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// VisibleTools yields the tools that the policy does not hide and whose name is
// after the given one, sorted by name, and only the newest version of each. It
// omits tools that are not configured. It asks the policy about a tool, with
// purpose list, when the caller reaches it. So a page of a list costs the same
// whatever comes after it. Hiding keeps a model from useless attempts. It does
// not protect, because the runtime decides a call by name like any other. If
// the policy cannot be evaluated for a tool, VisibleTools yields only an error.
func (l *Pipeline) VisibleTools(ctx context.Context, after string) iter.Seq2[tool.Tool, error] {
	return func(yield func(tool.Tool, error) bool) {
		if l == nil {
			return
		}
		facts := l.p.Facts.Session()
		tools := l.tools()
		names := tools.Names()
		first, found := slices.BinarySearch(names, after)
		if found {
			first++
		}
		for _, name := range names[first:] {
			t, _ := tools.Get(name) // Names lists only existing tools
			if t.NotConfiguredReason() != "" || t.HiddenReason(l.p.Client) != "" {
				continue
			}
			hidden, err := l.hidesTool(ctx, t, facts)
			if err != nil {
				t = tool.Tool{}
			}
			if (err != nil || !hidden) && !yield(t, err) {
				return
			}
		}
	}
}

// HidesTool reports whether the policy hides a tool from the session.
func (l *Pipeline) HidesTool(ctx context.Context, t tool.Tool) (bool, error) {
	return l.hidesTool(ctx, t, l.p.Facts.Session())
}

func (l *Pipeline) hidesTool(ctx context.Context, t tool.Tool, facts perm.SessionFacts) (bool, error) {
	a := admitted{tool: t, class: t.Class(), input: []byte("null"), redaction: &redaction{}, counted: facts}
	hidden, err := l.hides(ctx, a, toolaccess.Call(t.Name()))
	if err != nil {
		return true, fmt.Errorf("whether tool %s is listed cannot be told: %w", t.Name(), err)
	}
	return hidden, nil
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
	d, err := l.ask(ctx, tool.Tool{}, &req)
	return len(d.Details().HideReasons) > 0, err
}
