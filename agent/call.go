package agent

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/tool"
)

// Call runs one call in a transaction of its own, as Begin, Invoke and Commit would: committed where the call ends done or
// held, taken back where it does not, and left open where it waits for approval: Open finds it by Outcome.Txn. The error is
// that of the call, or, where the outcome is done or held, that of a commit that failed. A call by an id that was used before
// (WithCallID) is answered with what it came to, in the transaction that it had.
//
// Where the call only reads, its transaction comes to the journal in one step, before the outcome is returned.
func (s *Session) Call(ctx context.Context, name string, input any, opts ...CallOption) (tool.Outcome, error) {
	c := configured(opts)
	// One with an id has to be found while it runs, and filters see outcomes before they are returned.
	tx, err := s.begin(ctx, !c.named && len(s.rt.filters) == 0)
	if err != nil {
		return tool.Request{Tool: name}.NotBegun(ctx, "", err)
	}
	out, err := tx.Invoke(ctx, name, input, opts...)
	ctx = context.WithoutCancel(ctx)
	switch {
	case out.Txn == tx.ID() && out.Status == tool.StatusPending:
		return out, err
	case out.Txn == tx.ID() && err == nil:
		return out, tx.Commit(ctx)
	}
	back := tx.rec.Flush(ctx)
	if back == nil {
		_, back = tx.Revert(ctx)
	}
	return out, errors.Join(err, back)
}
