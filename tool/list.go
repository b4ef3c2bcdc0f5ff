package tool

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/perm"
)

// Listed returns the tools that the policy does not hide, by name: it is asked
// about each with purpose list. Hiding keeps a model from trying in vain; it
// protects nothing, as a call by name is decided like any other. A tool that the
// policy cannot be asked about is not listed, and the error says so.
func (l *Line) Listed(ctx context.Context) (shown []Tool, err error) {
	if l == nil {
		return nil, nil
	}
	facts := l.p.Facts.Session()
	for _, name := range l.p.Tools.Names() {
		t, _ := l.p.Tools.Get(name) // Names lists what is there
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
