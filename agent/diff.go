package agent

import (
	"context"

	"github.com/remit-dev/remit/revert/diff"
)

// Diff shows what a transaction or a call of any session did, or an undo or a redo
// of one: each resource before and after, whatever became of it since. It writes
// nothing.
func (rt *Runtime) Diff(ctx context.Context, id string) (diff.Diff, error) {
	return diff.Source{Journal: rt.journal, EnvironmentFor: rt.ways}.Of(ctx, id)
}

// Diff shows what a transaction or a call of this session did; see Runtime.Diff.
func (s *Session) Diff(ctx context.Context, id string) (diff.Diff, error) {
	if _, err := s.FindTxn(ctx, id); err != nil {
		return diff.Diff{}, err
	}
	return s.rt.Diff(ctx, id)
}
