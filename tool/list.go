package tool

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/perm"
)

// Listed returns the tools that the policy does not hide, by name, and of several
// versions the newest; one that is not configured is not offered. It is asked about each with purpose list. Hiding keeps a model from trying in vain; it
// protects nothing, as a call by name is decided like any other. A tool that the
// policy cannot be asked about is not listed, and the error says so.
func (l *Line) Listed(ctx context.Context) (shown []Tool, err error) {
	if l == nil {
		return nil, nil
	}
	facts := l.p.Facts.Session()
	tools := l.tools()
	for _, name := range tools.Names() {
		t, _ := tools.Get(name) // Names lists what is there
		if t.NotConfigured() != "" || t.Unseen(l.p.Client) != "" {
			continue
		}
		hidden, why := l.hides(ctx, admitted{tool: t, class: t.Class(), input: []byte("null"), veil: &veil{}, counted: facts})
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

func (l *Line) hides(ctx context.Context, a admitted) (bool, error) {
	req, err := l.request(a, callAccess(a.tool.Name()), false)
	if err != nil {
		return true, err
	}
	req.Purpose = perm.PurposeList
	d, err := l.ask(ctx, req)
	return len(d.Details().Hides) > 0, err
}
