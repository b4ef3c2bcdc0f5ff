package agent

import (
	"context"
	"iter"

	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// Tools returns the tools to show in the session: all that the policy does not
// hide, sorted by name. The runtime decides a call of a hidden tool like any
// other. With an error, the tools for which the policy failed are missing.
func (s *Session) Tools(ctx context.Context) (shown []tool.Tool, err error) {
	for t, failed := range s.ToolsAfter(ctx, "") {
		if failed != nil {
			err = failed
			continue
		}
		shown = append(shown, t)
	}
	return shown, err
}

// ToolsAfter yields the tools of Tools whose name is after the given one, for a
// list in pages. The policy decides about a tool when the caller reaches it. For
// a tool for which the policy failed, ToolsAfter yields an error.
func (s *Session) ToolsAfter(ctx context.Context, name string) iter.Seq2[tool.Tool, error] {
	return s.questions().VisibleTools(ctx, name)
}

// questions returns a pipeline for questions that call nothing.
func (s *Session) questions() *pipeline.Pipeline {
	return newTxn(s, revert.NewRecorder(s.rt.journal, s.rt.services.Host, s.id), nil, nil).line
}

// Usage returns how to use the tools that Tools returns, for the system prompt
// of the session's model; see tool.Registry.Usage.
func (s *Session) Usage(ctx context.Context) (string, error) {
	shown, err := s.Tools(ctx)
	if err != nil {
		return "", err
	}
	r, err := tool.NewRegistry(shown...)
	return r.Usage(), err
}

// PreviewDecision returns the effect that the policy would give a call of a
// tool with this input now. It returns perm.Deny also if the tool is hidden
// from the session or the policy hides this call. It runs and records nothing,
// and promises nothing: the policy decides a call when it is made.
func (s *Session) PreviewDecision(ctx context.Context, name string, input any) (perm.Effect, error) {
	return s.questions().PreviewDecision(ctx, name, input)
}

// Tool returns the tool that a call by this name, or name@version, selects in
// the session, customized for it. It also returns hidden tools.
func (s *Session) Tool(name string) (tool.Tool, bool) { return s.tools().Get(name) }
