package journal

import (
	"context"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
)

// revertsOrRedoes reports whether a transaction reverts or redoes another one.
func revertsOrRedoes(t *revert.Txn, id string) bool {
	return id != "" && (t.Reverts+t.Redoes == id || slices.Contains(t.AlsoReverts, id))
}

// writeInterrupted says that a revert or a redo of the shown transaction was
// interrupted.
func writeInterrupted(ctx context.Context, a *cli.App, rt *agent.Runtime, p *state.Workspace, id string) error {
	return state.Interrupted(ctx, rt, func(t *revert.Txn) (bool, error) {
		if !revertsOrRedoes(t, id) {
			return false, nil
		}
		verb := "revert"
		if t.Redoes != "" {
			verb = "redo"
		}
		_, _ = fmt.Fprintf(a.Out, "the %s %s of %s was interrupted, so that its files can be as before or as after: %s\n", verb, t.ID, id, p.Hint("recover"))
		return true, nil
	})
}
