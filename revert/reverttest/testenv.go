package reverttest

import (
	"context"
	"errors"
	"runtime"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/tool"
)

// TestEnv is the environment of a tool in one run, new and exclusive. An
// environment of Files alone needs nothing else: the kit knows how to compare
// it, how it fails, and how another actor changes it.
type TestEnv struct {
	// Files are those of the root workspace, by path, on a simulated disk that
	// loses unsynced data. Nil: there is no such root.
	Files map[string]string

	// Process returns further options of a process in this environment: roots,
	// drivers, schemes. It is called for each process: the first, and those
	// after a crash.
	Process func() ([]agent.Option, error)
	// Exit releases what an ended process had, as its system would:
	// connections, and their locks. Nil: nothing to release.
	Exit func() error
	// Tool creates the tool for each process in this environment: its memory
	// ends with the process before. Its declaration is that of the graded tool.
	// Nil: the graded tool is used throughout, and finds its environment by the
	// context or by a handle.
	Tool func() (tool.Tool, error)
	// Context adds values that the tool reads from its context.
	Context func(context.Context) context.Context

	// Snapshot returns the content of the environment by name: all that a
	// revert must restore, and that another actor may have added.
	Snapshot func() (map[string]string, error)
	// Traces returns what a revert may leave behind, such as the entries of a
	// ledger. A tool that leaves any is compensable at best.
	Traces func() (map[string]string, error)
	// Foreign holds the changes that another actor may make to what the call
	// left, by name.
	Foreign map[string]func() error
	// Power is a power failure: what the tool had not made durable is lost.
	// Nil: nothing of this environment is lost.
	Power func()

	// Close ends the environment.
	Close func() error
}

// errConnectionLost is returned for a request whose response is lost.
var errConnectionLost = errors.New("the connection broke")

// Wire connects a tool to its environment. The fakes of the environment call it
// for each effect. It lets the effect happen, or not, or later, as the fault of
// the run requires. Without a run, as on the nil Wire, every effect happens.
//
// ctx is the context of the tool's code. If a fake has another one, such as the
// handler of a server, the latest process counts. The caller must not hold a
// lock that a fault waits for.
type Wire struct{ run *run }

// Send performs an effect in another system at the request of the tool. The
// request can be lost, or arrive late, even after its sender died; so can the
// response. The fake must return an error to the tool as the result of the
// request.
func (w *Wire) Send(ctx context.Context, what string, effect func()) error {
	p := w.process(ctx)
	if p == nil {
		effect()
		return nil
	}
	switch p.at(arrives, "the request "+what) {
	case faultAction(late):
		p.run.later(what, effect)
		stop(p)
	case faultAction(delayed):
		p.run.later(what, effect)
		return errConnectionLost
	case faultAction(void):
		return nil
	case faultAction(lost):
		return errConnectionLost
	default:
		if p.ended() {
			stop(p)
		}
	}
	effect()
	return w.after(p, "the request "+what)
}

// Do performs an effect of the tool's own process: it happens or not, and never
// after the process has died.
func (w *Wire) Do(ctx context.Context, what string, effect func()) error {
	p := w.process(ctx)
	if p == nil {
		effect()
		return nil
	}
	p.at(does, what)
	if p.ended() {
		stop(p)
	}
	effect()
	p.at(did, what)
	if p.ended() {
		stop(p)
	}
	return nil
}

func (w *Wire) after(p *process, what string) error {
	if p.at(answers, what) == faultAction(lost) {
		return errConnectionLost
	}
	if p.ended() {
		stop(p)
	}
	return nil
}

func (w *Wire) process(ctx context.Context) *process {
	if w == nil || w.run == nil {
		return nil
	}
	if p, ok := ctx.Value(processKey{}).(*process); ok {
		return p
	}
	return w.run.latest()
}

// stop blocks the code of a dead process. After the run its deferred functions
// run, in an environment that is no longer checked.
func stop(p *process) {
	p.stopped()
	<-p.run.over
	runtime.Goexit()
}
