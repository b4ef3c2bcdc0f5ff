package pipeline

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
)

// NotBegun returns the outcome and the error of a request that did not reach a
// pipeline. The reason is one of these: the caller cancelled, the time was up,
// the grant is no longer valid, the request is invalid (ErrInvalid), or the
// journal failed.
func NotBegun(ctx context.Context, r tool.Request, txn string, why error) (tool.Outcome, error) {
	out := tool.Outcome{Tool: r.Tool, Txn: txn, Status: tool.StatusFailed, Changes: []tool.Change{}, Output: []byte("null")}
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded), errors.Is(context.Cause(ctx), tool.ErrTimeout):
		out.Status = tool.StatusTimeout
	case ctx.Err() != nil:
		out.Status = tool.StatusCancelled
	case errors.Is(why, tool.ErrDenied):
		out.Status, out.Stage = tool.StatusDenied, "grant"
	case errors.Is(why, tool.ErrInvalid):
		out.Status = tool.StatusInvalid
	}
	out.Error = &tool.Problem{What: "the call did not begin", Why: canon.Printable(why.Error(), maxWhy)}
	out.Text = "The call did not begin, and had no effect: " + canon.Sentence(out.Error.Why)
	return out, &tool.CallError{Status: out.Status, Tool: r.Tool, Why: out.Error.Why, Err: why}
}
