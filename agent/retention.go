package agent

import (
	"context"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
)

// Erase destroys the bodies of the records of one call. by and why name the
// person and the reason; see revert.Reverter. The call can then not be
// reverted.
func (rt *Runtime) Erase(ctx context.Context, call, by, why string) (revert.EraseReport, error) {
	rep, err := rt.services.Reverter.Erase(ctx, call, record.Erased{By: by, Why: why})
	if err == nil {
		rt.sessionStates.erased(call)
	}
	return rep, err
}

// Prune deletes the revert data of transactions that are past retention; see
// revert.Reverter. Until then a committed transaction can be reverted.
func (rt *Runtime) Prune(ctx context.Context, keep revert.Retention) (revert.PruneReport, error) {
	return rt.services.Reverter.Prune(ctx, keep)
}
