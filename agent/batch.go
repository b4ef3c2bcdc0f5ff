package agent

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// BatchCall is one call of a batch: a tool's name and an input as Txn.Invoke
// accepts it.
type BatchCall struct {
	Tool  string
	Input any
	ID    string // the host program's own ID, see WithCallID; optional
}

// InvokeAll runs a batch of calls concurrently, at most 64 of them at a time.
// It returns when all have ended, with one outcome each, in the order of the
// batch. The runtime decides and verifies each call alone, and reverts it alone
// if it fails: the outcome of one call does not affect the others. A policy
// sees the position of a call as input.call.batch. Outcome.Err returns the
// error of a call. A batch as a whole has no error, and an empty one has no
// outcomes.
//
// Calls of one batch run in no particular order, so they should not need each
// other, nor write the same file.
func (tx *Txn) InvokeAll(ctx context.Context, batch []BatchCall) []tool.Outcome {
	outcomes, calls := make([]tool.Outcome, len(batch)), make([]tool.Request, len(batch))
	if len(batch) == 0 {
		return outcomes
	}
	turn := tx.s.state.nextTurn()
	for i, ask := range batch {
		calls[i] = tool.Request{Tool: ask.Tool, Input: ask.Input, Batch: perm.BatchFacts{Index: i, Count: len(batch)}, Turn: turn}
	}
	refusal, ended := tx.line.BeginBatch(ctx, calls)
	var all sync.WaitGroup
	for i, ask := range batch {
		all.Go(func() {
			outcomes[i], _ = tx.invoke(ctx, pipeline.Request{Request: calls[i], Refusal: refusal}, ask.ID, ask.ID != "")
		})
	}
	all.Wait()
	ended(outcomes)
	return outcomes
}

// invoke runs one call. If named is set and the call ID was used before, it
// returns the recorded outcome.
func (tx *Txn) invoke(ctx context.Context, req pipeline.Request, given string, named bool) (tool.Outcome, error) {
	if named {
		return tx.runOnce(ctx, req, given)
	}
	return tx.run(ctx, req)
}

// run runs one call concurrently with others, but never during the end of the
// transaction.
func (tx *Txn) run(ctx context.Context, req pipeline.Request) (tool.Outcome, error) {
	leave, err := tx.lock.share(ctx)
	if err != nil {
		return pipeline.NotBegun(ctx, req.Request, tx.ID(), err)
	}
	defer leave()
	if err := cmp.Or(tx.s.rt.open(), tx.usable()); err != nil {
		return tx.refused(req.Tool, tool.StatusInvalid, err), fmt.Errorf("%w: %w", tool.ErrInvalid, err)
	}
	out := tx.line.Run(ctx, req)
	tx.noticeHeld(out)
	return out, out.Err()
}
