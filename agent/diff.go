package agent

import (
	"context"

	"github.com/remit-dev/remit/revert/diff"
)

// Diff returns the changes of a transaction or a call of any session, or of a
// revert or a redo of one: each resource before and after. It ignores later
// changes and writes nothing.
func (rt *Runtime) Diff(ctx context.Context, id string) (diff.Diff, error) {
	return diff.Source{Journal: rt.journal, EnvironmentFor: rt.environment}.Of(ctx, id)
}

// Diff returns the changes of a transaction or a call of this session; see
// Runtime.Diff.
func (s *Session) Diff(ctx context.Context, id string) (diff.Diff, error) {
	if _, err := s.FindTxn(ctx, id); err != nil {
		return diff.Diff{}, err
	}
	return s.rt.Diff(ctx, id)
}
