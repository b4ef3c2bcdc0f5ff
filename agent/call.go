package agent

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// Call runs one call in its own transaction, as Begin, Invoke and Commit do. It
// commits the transaction if the call ends done or held, and otherwise reverts
// it. If the call waits for an approval, the transaction stays open:
// Outcome.Txn identifies it. The error is that of the call or, if the call is
// done or held, that of a failed commit; see CommitError. If the call ID was used before
// (WithCallID), Call returns the recorded outcome and its transaction.
//
// If the call only reads, its whole transaction is recorded in one step, before
// Call returns.
func (s *Session) Call(ctx context.Context, name string, input any, opts ...CallOption) (tool.Outcome, error) {
	c := configured(opts)
	// A call with an ID must be on the journal while it runs, and filters see
	// outcomes before Call returns them.
	tx, err := s.begin(ctx, !c.named && len(s.rt.services.Filters) == 0, nil)
	if err != nil {
		return pipeline.NotBegun(ctx, tool.Request{Tool: name}, "", err)
	}
	out, err := tx.Invoke(ctx, name, input, opts...)
	ctx = context.WithoutCancel(ctx)
	switch {
	case out.Txn == tx.ID() && out.Status == tool.StatusPending:
		return out, err
	case out.Txn == tx.ID() && err == nil:
		err := tx.Commit(ctx)
		if gate := (*CommitError)(nil); errors.As(err, &gate) {
			out = gate.Outcome(out)
		}
		return out, err
	}
	back := tx.rec.Flush(ctx)
	if back == nil {
		_, back = tx.Revert(ctx, revert.Options{})
	}
	return out, errors.Join(err, back)
}
