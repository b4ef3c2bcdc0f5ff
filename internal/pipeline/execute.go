package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"slices"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// executed is a call whose code returned a result and whose handles are closed.
// settle needs one.
type executed struct {
	intended
	result tool.Result
	output []byte // canonical form of the result
}

// execute is step 5: it runs the tool's code once. When the call times out or
// its caller cancels, the permits close first. The runtime waits for operations
// in flight and refuses later ones. So the effects of the call are fixed before
// its outcome is known.
func (l *Pipeline) execute(ctx context.Context, i intended) (executed, *tool.Outcome) {
	if i.answer != nil { // a filter answered: the code does not run
		return executed{intended: i, result: cloneResult(i.answer), output: i.answer}, nil
	}
	whole := ctx // applying the changes can take longer than the code
	ctx, cancel := i.clock.Start(ctx)
	defer cancel()
	i.begins()
	result, over, err := l.enter(ctx, i)
	e := executed{intended: i, result: result}
	if closed := l.close(ctx, i.live); closed != nil {
		i.live.Abort(context.WithoutCancel(ctx))
		return executed{}, l.failed(context.WithoutCancel(ctx), i, callFailure{err: closed, going: true})
	}
	if refused := i.live.Refused(); refused != nil {
		err = stopped(err, refused) // even if the tool hides it
	} else if waits := i.live.Waits(); waits != nil {
		err = waits
	}
	if err == nil {
		err = result.Err()
	}
	if content := spec(i.tool).OutputContent; err == nil && content != nil && result.MediaType == "" && result.Text != "" {
		result.MediaType = content.MediaType
		e.result = result
	}
	if err == nil {
		e.output, err = l.encode(result)
	}
	settleCtx := lasting(whole)
	cause := context.Cause(ctx)
	//mutant:order
	if err == nil {
		if err = i.live.Prepare(whole); err != nil {
			cause = context.Cause(whole)
		}
	}
	if err == nil {
		err = i.live.Finish(settleCtx)
	}
	if err != nil {
		i.live.Abort(settleCtx)
		var waits *approvalPendingError
		if errors.As(err, &waits) {
			return executed{}, l.suspend(settleCtx, waits)
		}
		return executed{}, l.failed(settleCtx, i, callFailure{err: err, cause: cause, running: !over})
	}
	return e, nil
}

// lasting returns a context with the values of ctx that does not end.
func lasting(ctx context.Context) context.Context {
	if ctx.Done() == nil { // it does not end
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// executeTime returns how long the code of a tool may run, without the time
// that it waits for approvals.
func (l *Pipeline) executeTime(t tool.Tool) time.Duration {
	if limit := spec(t).Hints.Timeout; limit > 0 {
		return limit
	}
	return l.p.Limits.Timeout
}

// stopped returns the error of a call that was denied an access. The tool's own
// proof of no effect, and that of the parts of a composed tool, still count.
func stopped(err error, refused *callstate.DeniedError) error {
	var composed *callstate.ComposedError
	var none *callstate.NoEffectError
	switch {
	case errors.As(err, &composed):
		return &callstate.ComposedError{Err: refused, Nothing: composed.Nothing, Back: composed.Back}
	case errors.As(err, &none):
		return tool.NoEffect(refused)
	}
	return refused
}

// close ends the call's permits. Operations in flight have the grace period to
// end.
func (l *Pipeline) close(ctx context.Context, live *callstate.Call) error {
	if live.CloseIdle() { // without a timer, which nothing would wait for
		return nil
	}
	grace, cancel := l.p.Host.WithTimeout(context.WithoutCancel(ctx), l.p.Limits.GracePeriod, tool.ErrTimeout)
	defer cancel()
	return live.Close(grace)
}

// errLeft is the error of code that neither returned nor panicked.
var errLeft = errors.New("the tool's code ended its goroutine before it returned")

type returned struct {
	result tool.Result
	err    error
}

// enter runs the code on its own goroutine, so a call whose code does not
// return can still end. over reports whether the code returned.
func (l *Pipeline) enter(ctx context.Context, i intended) (r tool.Result, over bool, err error) {
	if err := l.p.Host.Point(ctx, "tool.execute"); err != nil {
		return tool.Result{}, true, tool.NoEffect(err)
	}
	back := make(chan returned, 1)
	go runCode(ctx, spec(i.tool).Execute, i.context(), slices.Clone(i.input), back)
	select {
	case r := <-back:
		if ctx.Err() == nil {
			return r.result, true, r.err
		}
		back <- r // as if select had chosen the other case
	case <-ctx.Done():
	}
	// Operations in flight also see the end of ctx, and the runtime waits for
	// them. A result that arrived in time counts. Code whose last operation
	// ended here is about to return.
	if err := l.close(ctx, i.live); err != nil {
		return tool.Result{}, false, err
	}
	if err := l.p.Host.Point(context.WithoutCancel(ctx), "tool.late"); err != nil {
		return tool.Result{}, false, err
	}
	late, cancel := l.p.Host.WithTimeout(context.WithoutCancel(ctx), returnTime, tool.ErrTimeout)
	defer cancel()
	select {
	case r := <-back:
		return r.result, true, cancelCause(ctx, r.err)
	case <-late.Done():
		return tool.Result{}, false, context.Cause(ctx)
	}
}

// runCode runs the code of a tool and always sends what it returned.
func runCode(ctx context.Context, execute tool.Execute, tc ctxperm.ToolContext, input json.RawMessage, back chan<- returned) {
	r := returned{err: errLeft} // replaced when the code returns
	defer func() {
		if p := recover(); p != nil {
			r = returned{err: &callstate.PanicError{Value: p}}
		}
		back <- r
	}()
	r.result, r.err = execute(ctx, tc, input)
}

// cancelCause returns the error of code that failed after its timeout or after its
// caller cancelled. That is the cause, regardless of the error that the code
// itself returned.
func cancelCause(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// returnTime is how long code may still take to return after its timeout or
// cancellation, once its last operation ended. Without it, the Go scheduler
// would decide whether the tool's proof of no effect counts.
const returnTime = time.Second

// encode copies the result. From here on it shares no memory with the tool.
func (l *Pipeline) encode(r tool.Result) ([]byte, error) {
	if r.JSON != nil {
		if _, err := canon.Canonicalize(r.JSON, canon.Limits{Bytes: canon.DefaultLimits().Bytes, Depth: l.p.Limits.MaxDepth}); err != nil {
			return nil, fmt.Errorf("the tool's structured output: %w", err)
		}
	}
	if _, _, err := mime.ParseMediaType(r.MediaType); r.MediaType != "" && err != nil {
		return nil, errors.New("the tool's result: its MediaType is none, such as text/markdown")
	}
	if err := checkRaises(r); err != nil {
		return nil, fmt.Errorf("the tool's result: %w", err)
	}
	out, err := encodeResult(r)
	if err != nil {
		return nil, fmt.Errorf("the tool's result: %w", err)
	}
	if len(out) > l.p.Limits.MaxOutput {
		return nil, fmt.Errorf("the tool's result has %d bytes; the limit is %d", len(out), l.p.Limits.MaxOutput)
	}
	return out, nil
}

// encodeResult returns the canonical form of a result. Most are a text and
// nothing else, which needs no general form.
func encodeResult(r tool.Result) ([]byte, error) {
	other := len(r.JSON) + len(r.Parts) + len(r.Meta) + len(r.Sources) + len(r.Labels) + len(r.Requires) + len(r.MediaType)
	if r.Text != "" && len(r.Text) <= maxPlainText && other == 0 && !r.IsError {
		out := append(make([]byte, 0, len(r.Text)+len(`{"text":""}`)), `{"text":`...)
		if out, ok := canon.AppendText(out, r.Text); ok {
			return append(out, '}'), nil
		}
	}
	return canon.Marshal(r)
}

// maxPlainText bounds a text that is encoded without the general form, which
// checks the size of the whole.
const maxPlainText = 1 << 20

// causeStatus returns the outcome that an error implies, before it is known
// whether the call had an effect.
func causeStatus(err, cause error) (status tool.Status, stage string) {
	var panicked *callstate.PanicError
	switch {
	case errors.As(err, &panicked):
		return tool.StatusFailed, ""
	case errors.Is(err, perm.ErrTimeout):
		return tool.StatusTimeout, "policy"
	case errors.Is(err, tool.ErrDenied):
		return tool.StatusDenied, deniedStage(err)
	case errors.Is(err, tool.ErrTimeout), errors.Is(err, context.DeadlineExceeded) && cause != nil,
		errors.Is(err, context.Canceled) && errors.Is(cause, tool.ErrTimeout):
		return tool.StatusTimeout, ""
	case cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, cause)):
		return tool.StatusCancelled, ""
	default:
		return tool.StatusFailed, ""
	}
}
