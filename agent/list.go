package agent

import (
	"context"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// Tools returns the tools to show to whoever runs in the session: all that the
// policy does not hide, by name. A call of a hidden tool is decided like any
// other. With an error, those that could not be decided about are missing.
func (s *Session) Tools(ctx context.Context) ([]tool.Tool, error) {
	return newTxn(s, revert.NewRecorder(s.rt.journal, s.rt.host, s.id), nil).line.VisibleTools(ctx)
}

// Usage returns what the tools that Tools returns say of how to use them, for the
// system prompt of the session's model; see tool.Registry.Usage.
func (s *Session) Usage(ctx context.Context) (string, error) {
	shown, err := s.Tools(ctx)
	if err != nil {
		return "", err
	}
	r, err := tool.NewRegistry(shown...)
	return r.Usage(), err
}

// PreviewDecision says what a call of a tool with an input would meet as things are now: perm.Deny also where the session is not shown the tool,
// or the policy hides this call of it. It makes no call and leaves no record, and it is no promise: a call is decided when it is made.
func (s *Session) PreviewDecision(ctx context.Context, name string, input any) (perm.Effect, error) {
	return newTxn(s, revert.NewRecorder(s.rt.journal, s.rt.host, s.id), nil).line.PreviewDecision(ctx, name, input)
}

// Tool finds the tool that a call by this name, or name@version, asks for in the session, as it is made for that; also one that is
// not shown.
func (s *Session) Tool(name string) (tool.Tool, bool) { return s.tools().Get(name) }
