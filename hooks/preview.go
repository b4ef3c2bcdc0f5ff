package hooks

import (
	"context"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// Preview is what a use of a client's tool would become.
type Preview struct {
	Tool   string
	Args   map[string]any
	Effect perm.Effect // of the policy before the use; accesses that a running command requests come later
}

// Preview returns what one use of a tool would become in a session whose
// project is dir, an absolute path without links. Nothing runs. sandbox is
// Workspace.Sandbox.
func (c Client) Preview(ctx context.Context, s *agent.Session, e Event, dir string, sandbox bool) (Preview, error) {
	u := c.useOf(e, dir)
	name, effect, err := choose(ctx, s, u, sandbox)
	return Preview{name, u.args, effect}, err
}

// choose returns the tool of a use, and what the policy says about it. A
// command has two: the first one that the policy does not deny.
func choose(ctx context.Context, s *agent.Session, u use, sandbox bool) (string, perm.Effect, error) {
	names := u.tools(sandbox)
	var effect perm.Effect
	for _, name := range names {
		var err error
		if effect, err = s.PreviewDecision(ctx, name, tool.Args(u.args)); err != nil {
			return name, effect, err
		}
		if effect != perm.Deny {
			return name, effect, nil
		}
	}
	return names[len(names)-1], effect, nil
}
