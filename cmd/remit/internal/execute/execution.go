package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// execution is one run of the command.
type execution struct {
	app     *cli.App
	flags   *flags
	journal journal.Journal
	started atomic.Bool // signals belong to the program
}

// call runs the command as a call in a transaction of its own.
func (x *execution) call(ctx context.Context, s *agent.Session, args tool.Args, environ []string) error {
	// A signal does not end the context: the program gets it first.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	signals, stop := x.signals(cancel)
	defer stop()
	in, out, errs := x.app.Streams()
	attached := process.Attachment{Stdin: in, Stdout: out, Stderr: errs, Signals: signals}
	if !x.flags.clean {
		attached.Environment = process.CallerEnvironment(environ, x.flags.named...)
	}
	ctx = process.Attach(ctx, attached)
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	begun := agent.OnStart(func(string, func(context.Context) error, func(context.Context, string, any) error) {
		x.started.Store(true)
	})
	o, _ := tx.Invoke(ctx, "process_run", args, begun) // the outcome has the error
	if o.Status == tool.StatusPending {                // its approval ends the transaction
		return x.problem(o)
	}
	if o, err = x.commit(ctx, tx, o); err != nil {
		return err
	}
	return x.report(o)
}

// commit ends the transaction, and returns the outcome of the call. The policy
// can have held it until now.
func (x *execution) commit(ctx context.Context, tx *agent.Txn, o tool.Outcome) (tool.Outcome, error) {
	if o.Status == tool.StatusHeld {
		x.started.Store(true)
	} else {
		ctx = context.WithoutCancel(ctx) // a signal must not stop the end half-way
	}
	err := tx.Commit(ctx)
	if released := tx.Released(); len(released) > 0 {
		o = released[0]
	}
	var gate *agent.CommitError
	switch {
	case errors.As(err, &gate) && errors.Is(err, tool.ErrDenied):
		return gate.Outcome(o), nil
	case errors.As(err, &gate) && errors.Is(err, tool.ErrPending):
		return o, &cli.Problem{
			Code: cli.ExitPending, What: "the command ran, and its commit waits for approval", Why: gate.Why,
			Fix: x.flags.Hint("pending", tx.ID()) + " shows what it did, and how to approve it; then " + x.flags.CommitHint(tx.ID()),
		}
	case errors.Is(err, agent.ErrNotReleased) && !o.Status.OK():
		err = nil // the outcome says it
	}
	return o, err
}

// signals returns the signals for the program. Before it starts, a signal
// cancels the call. Signals that are ignored, as below nohup, stay so.
func (x *execution) signals(cancel context.CancelCauseFunc) (forward chan syscall.Signal, stop func()) {
	var caught []os.Signal
	for _, sig := range forwarded() {
		if !signal.Ignored(sig) {
			caught = append(caught, sig)
		}
	}
	const waiting = 64
	from, forward := make(chan os.Signal, waiting), make(chan syscall.Signal, waiting)
	done := make(chan struct{})
	if len(caught) > 0 { // none would mean all
		signal.Notify(from, caught...)
	}
	go func() {
		for {
			select {
			case <-done:
				return
			case got := <-from:
				sig, _ := got.(syscall.Signal)
				if !x.started.Load() && sig != resize {
					cancel(fmt.Errorf("remit got the signal %q before the command had started", sig))
				}
				select {
				case forward <- sig:
				default: // a program that does not take signals as fast loses some, as elsewhere
				}
			}
		}
	}()
	return forward, func() {
		signal.Stop(from)
		close(done)
	}
}

// report shows what the program did not say itself, and sets the exit code.
func (x *execution) report(o tool.Outcome) error {
	if o.Status != tool.StatusDone {
		return x.problem(o)
	}
	p, ok := callview.ProgramOf(o.Output)
	if !ok {
		return fmt.Errorf("call %s: its result is not that of a program", o.Call)
	}
	x.app.ProgramCode = exitCode(p)
	say := func(text string) { _, _ = fmt.Fprintln(x.app.Err, "remit: "+cli.Printable(text)) }
	for _, what := range p.LeftOut {
		say("not applied: " + what)
	}
	for _, met := range p.Restrictions {
		switch {
		case met.Rule == process.RuleDeniedHost: // many programs hide why a tunnel was refused
			say(met.Text)
		case p.Failed():
			say("sandbox: " + met.Text)
		}
	}
	if x.app.ErrTerminal && len(o.Changes) > 0 {
		say(render.Changes(o.Changes) + "; revert: " + x.flags.Hint("revert", o.Txn))
	}
	return nil
}

// exitCode returns the exit code of a program, as a shell reports it.
func exitCode(p callview.Program) int {
	if p.Signal == "" {
		return *p.Code
	}
	const base, last = 128, 64
	for n := 1; n <= last; n++ {
		if syscall.Signal(n).String() == p.Signal {
			return base + n
		}
	}
	return base
}

// problem returns the problem of a call that did not succeed.
func (x *execution) problem(o tool.Outcome) error {
	p := &cli.Problem{Code: cli.CallCode(o), What: "the call ended " + string(o.Status), Denied: o.Status == tool.StatusDenied}
	if o.Error != nil {
		p.What, p.Why, p.Fix = o.Error.What, render.Once(o.Error.Why), o.Error.Fix
	}
	switch o.Status {
	case tool.StatusPending:
		p.Fix += ": " + x.flags.ResumeHint(o.Call)
	case tool.StatusDenied, tool.StatusInvalid, tool.StatusFailed, tool.StatusCancelled, tool.StatusTimeout:
		p.What = "nothing was changed: " + p.What
	default:
	}
	if o.Call != "" {
		p.ID = x.flags.ShowArguments(o.Call)
	}
	return p
}
