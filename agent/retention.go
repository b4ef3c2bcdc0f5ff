package agent

import (
	"context"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
)

// Erase destroys what the records of one call hold, in the name of a person and
// for a reason; see revert.Reverter. What the call did can then not be taken back.
func (rt *Runtime) Erase(ctx context.Context, call, by, why string) (revert.EraseReport, error) {
	return rt.reverter.Erase(ctx, call, record.Erased{By: by, Why: why})
}

// Prune drops what is needed to take transactions back that are past retention; see
// revert.Reverter. Until then a committed transaction can be taken back.
func (rt *Runtime) Prune(ctx context.Context, keep revert.Retention) (revert.PruneReport, error) {
	return rt.reverter.Prune(ctx, keep)
}
