package script

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// runner runs a script. It begins a transaction if a line needs one.
type runner struct {
	session *agent.Session
	journal journal.Journal
	flags   startup.Flags
	results resultWriter
	code    cli.ExitCode
	now     func(doing string) // shows what takes long; nil: nothing shows it

	rest func(after int) []line // returns the lines after one; nil: they are unknown
	last int                    // number of the last line that began

	tx         *agent.Txn // nil: no transaction is open
	savepoints []string   // savepoints of the transaction
	sum        Summary    // summary of the current or next transaction
	held       map[string]heldCall
	began      bool // a transaction began
	ended      bool // the transaction ended, and no line followed
	endStep    int  // number of the line whose end of the transaction is in progress; 0: none
}

// script runs the lines, and ends the transaction that they leave open. It
// reports the outcome of each call. It returns an error only if the runtime
// fails.
func (r *runner) script(ctx context.Context, lines <-chan line) error {
	end := r.flags.AtEnd
	for going := true; going; {
		l, ok := next(ctx, lines)
		if !ok {
			break
		}
		var err error
		going, err = r.line(ctx, l)
		if err != nil {
			return errors.Join(err, r.leave(ctx))
		}
	}
	if ctx.Err() != nil {
		// Do not commit an incomplete script.
		if end == "commit" {
			end = "leave-open"
		}
		r.code = cli.Worst(r.code, cli.ExitInternal)
		if r.rest != nil && r.sum.NotRun == nil {
			r.sum.NotRun = r.remaining(r.last)
		}
	}
	return r.finish(ctx, end)
}

// leave reports the open transaction after the runtime failed.
func (r *runner) leave(ctx context.Context) error {
	if r.tx == nil {
		return nil
	}
	return r.finish(ctx, "leave-open")
}

// next returns the next line. It returns false at the end of the script or of
// ctx.
func next(ctx context.Context, lines <-chan line) (line, bool) {
	select {
	case l, ok := <-lines:
		return l, ok && ctx.Err() == nil
	case <-ctx.Done():
		return line{}, false
	}
}

// line runs one line. It reports whether the script continues.
func (r *runner) line(ctx context.Context, l line) (going bool, err error) {
	if l.err != nil {
		return false, l.unread()
	}
	r.ended, r.last = false, l.n
	s, err := l.step()
	if err != nil {
		return r.refuse(ctx, l.n, err)
	}
	if s.end != "" {
		r.endStep = l.n
		err := r.finish(ctx, s.end)
		going := r.endStep > 0 // later lines can depend on a commit that waits
		r.endStep = 0
		return going, err
	}
	if err := r.begin(ctx); err != nil {
		return false, err
	}
	switch {
	case s.savepoint != "":
		err = r.savepoint(ctx, l.n, s.savepoint)
	case s.revertTo != "":
		err = r.revertTo(ctx, l.n, s.revertTo)
	default:
		return r.calls(ctx, l.n, s.calls)
	}
	var bad *stepError
	if errors.As(err, &bad) {
		return r.refuse(ctx, l.n, err)
	}
	return err == nil, err
}

func (l line) step() (step, error) {
	if l.long {
		return step{}, badStep("split it into several calls", "the line has more than %d MiB", maxLine>>20)
	}
	return parseStep(l.text)
}

// refuse reports a line that is not a step. It ends the script, because later
// lines can depend on the line.
func (r *runner) refuse(ctx context.Context, n int, why error) (going bool, err error) {
	then := ""
	if !r.flags.KeepGoing {
		then = ", the script ends here"
	}
	r.answer(n, call{}, notAStep(n, why, then))
	if r.flags.Atomic {
		return false, r.stop(ctx, n, "revert")
	}
	return r.flags.KeepGoing, nil
}

// notAStep returns the outcome of a line that is not a step. Follows is added
// to the message for people.
func notAStep(n int, why error, follows string) tool.Outcome {
	p := &tool.Problem{What: fmt.Sprintf("line %d is not a step%s", n, follows), Why: why.Error()}
	var bad *stepError
	if errors.As(why, &bad) {
		p.Fix = bad.fix
	}
	text := fmt.Sprintf("Line %d is not a step: %v; %s.", n, why, p.Fix)
	return tool.Outcome{Status: tool.StatusInvalid, Output: []byte("null"), Error: p, Text: text}
}

// showProgress shows the text until the returned function is called. Between two lines
// the user can type.
func (r *runner) showProgress(what string) (done func()) {
	if r.now == nil {
		return func() {}
	}
	r.now(what)
	return func() { r.now("") }
}

func (r *runner) begin(ctx context.Context) (err error) {
	if r.tx != nil {
		return nil
	}
	if r.tx, err = r.session.Begin(ctx); !errors.Is(err, revert.ErrBusy) {
		r.began = r.began || err == nil
		return err
	}
	what := "nothing was run"
	if r.began {
		what = "the rest of the script was not run"
	}
	return &cli.Problem{Code: cli.ExitUsage, What: what, Why: err.Error(), Fix: "wait until the other run has ended, and repeat; " + r.flags.Hint("log") + " lists what is open"}
}

// calls runs the calls of one line concurrently. It reports them in the order
// of the line.
func (r *runner) calls(ctx context.Context, n int, calls []call) (going bool, err error) {
	batch := make([]agent.BatchCall, len(calls))
	for i, c := range calls {
		batch[i] = agent.BatchCall{Tool: c.tool, Input: c.input()}
	}
	defer r.showProgress(fmt.Sprintf("line %d: %s", n, calls[0].tool))()
	ok, waits := true, false
	for i, o := range r.tx.InvokeAll(ctx, batch) {
		o = r.withFix(ctx, o)
		r.answer(n, calls[i], o)
		ok = ok && o.Status.OK()
		waits = waits || o.Status == tool.StatusPending
	}
	if waits { // later lines can depend on the call, and its transaction must not end before it
		return false, r.stop(ctx, n, "leave-open")
	}
	if !ok && r.flags.Atomic {
		return false, r.stop(ctx, n, "revert")
	}
	return true, nil
}

// stop ends the script at line n.
func (r *runner) stop(ctx context.Context, n int, how string) error {
	r.sum.NotRun = r.remaining(n)
	return r.finish(ctx, how)
}

// remaining returns the lines after line n, or nil if there are none.
func (r *runner) remaining(n int) *notRun {
	if r.rest == nil {
		return &notRun{From: n + 1}
	}
	left := r.rest(n)
	if len(left) == 0 {
		return nil
	}
	return &notRun{From: left[0].n, Lines: len(left)}
}

func (r *runner) answer(n int, c call, o tool.Outcome) {
	r.sum.count(o)
	r.code = cli.Worst(r.code, cli.CallCode(o))
	if o.Status == tool.StatusHeld {
		r.hold(n, c, o.Call)
	}
	r.results.call(n, c, o)
}

func (r *runner) savepoint(ctx context.Context, n int, name string) error {
	err := r.tx.Savepoint(ctx, name)
	if errors.Is(err, tool.ErrInvalid) {
		return badStep("choose a shorter name", "%v", err)
	}
	if err == nil {
		r.savepoints = append(r.savepoints, name)
		r.results.mark(n, name)
	}
	return err
}

func (r *runner) revertTo(ctx context.Context, n int, name string) error {
	if !slices.Contains(r.savepoints, name) {
		return badStep(fmt.Sprintf("the savepoints of this transaction are %q", r.savepoints), "there is no savepoint %q", name)
	}
	defer r.showProgress(fmt.Sprintf("line %d: taking back to %s", n, name))()
	rep, err := r.tx.RevertTo(ctx, name)
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
		return err
	}
	// The revert removed later savepoints.
	for r.savepoints[len(r.savepoints)-1] != name {
		r.savepoints = r.savepoints[:len(r.savepoints)-1]
	}
	for _, i := range rep.Items {
		if _, held := r.held[i.Call]; held { // the revert dropped the held call
			delete(r.held, i.Call)
			r.sum.Held--
		}
	}
	if !rep.Complete() {
		r.code = cli.Worst(r.code, cli.ExitPartial)
		r.sum.NotReverted = append(r.sum.NotReverted, rep.NotReverted()...)
	}
	r.results.back(n, name, rep)
	return nil
}

// finish ends the transaction and reports its summary: how is commit, revert or
// leave-open. It does nothing if no line followed the last end.
func (r *runner) finish(ctx context.Context, how string) error {
	if r.ended {
		return nil
	}
	// An interrupt must not stop the end half-way.
	ctx = context.WithoutCancel(ctx)
	if err := r.begin(ctx); err != nil {
		return err
	}
	defer r.showProgress("ending the transaction")()
	err := r.endBy(ctx, how)
	r.sum.Txn = r.tx.ID()
	r.sum.State, r.sum.Committing = r.state(ctx)
	r.results.end(r.sum)
	r.tx, r.savepoints, r.held, r.sum, r.ended = nil, nil, nil, newSummary(), true
	return err
}

func (r *runner) endBy(ctx context.Context, how string) error {
	switch how {
	case "commit":
		stopped, err := r.commit(ctx)
		if stopped && r.flags.Atomic {
			return r.endBy(ctx, "revert")
		}
		return err
	case "revert":
		rep, err := r.tx.Revert(ctx, revert.Options{})
		if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
			return err
		}
		r.sum.NotReverted, r.sum.Held = rep.NotReverted(), 0
		if !rep.Complete() {
			r.code = cli.Worst(r.code, cli.ExitPartial)
		}
	}
	return nil
}

// state returns the state from the journal. An unreadable journal counts as
// open.
func (r *runner) state(ctx context.Context) (s revert.TxnState, committing bool) {
	t, err := revert.Load(ctx, r.journal, r.tx.ID())
	if err != nil {
		return revert.TxnOpen, false
	}
	return t.State(), t.End == "" && t.Committing
}
