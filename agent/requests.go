package agent

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// AskNode asks the node of a NodeError to do what Revert or Redo could not do
// here: see revert.Request. q says what; its Node and Txn come from the error.
// Asked of package revert tells later how far the request is.
func (rt *Runtime) AskNode(ctx context.Context, q revert.Request, at *NodeError) (revert.Request, error) {
	q.Node, q.Txn = at.Node, at.Txn
	return rt.services.Reverter.Ask(ctx, q)
}

// DoAsked reverts and redoes what other nodes asked of this one, oldest first,
// until nothing is left, and returns the answers. It acts like a person who
// calls Revert and Redo here. A request that a process left unfinished when it
// died is completed, and is not done twice. If ctx ends, the request in progress
// is given back. A journal that nodes do not share has no requests.
func (rt *Runtime) DoAsked(ctx context.Context) (done []revert.Request, err error) {
	if _, shared := rt.journal.(journal.Requests); !shared {
		return nil, nil
	}
	for {
		q, err := rt.services.Reverter.TakeAsked(ctx)
		if errors.Is(err, journal.ErrNotFound) {
			return done, nil
		}
		if err == nil {
			q, err = rt.services.Reverter.AnswerAsked(ctx, rt.doAsked(ctx, q))
		}
		if err != nil {
			return done, err
		}
		if q.State == journal.RequestAsked {
			return done, context.Cause(ctx)
		}
		done = append(done, q)
	}
}

// doAsked carries out one request. It returns the request with its answer, or
// with the state RequestAsked if ctx ended.
func (rt *Runtime) doAsked(ctx context.Context, q revert.Request) revert.Request {
	if q.State.Ended() { // a process did it, and died before it could answer
		return q
	}
	var rep revert.Report
	var err error
	if q.Redo {
		rep, err = rt.Redo(ctx, q.Target, q.By)
	} else {
		rep, err = rt.Revert(ctx, q.Target, q.Options())
	}
	switch {
	case err == nil || errors.Is(err, ErrPartialRevert):
		rep = rep.PerResource()
		q.Report, q.State = &rep, journal.RequestDone
		q.ForceHelps = !q.Redo && !q.Force && rt.forceHelps(ctx, q)
	case ctx.Err() != nil:
		q.State = journal.RequestAsked
	default:
		q.Why, q.State = err.Error(), journal.RequestFailed
	}
	return q
}

// forceHelps reports whether a forced revert leaves less than a request left.
func (rt *Runtime) forceHelps(ctx context.Context, q revert.Request) bool {
	if q.Report.Complete() {
		return false
	}
	how := q.Options()
	plain, err := rt.Preview(ctx, q.Target, how)
	if err != nil {
		return false
	}
	how.Force = true
	forced, err := rt.Preview(ctx, q.Target, how)
	return err == nil && len(forced.NotReverted()) < len(plain.NotReverted())
}
