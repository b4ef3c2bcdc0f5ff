package reverttest

import (
	"context"
	"errors"
	"runtime"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/tool"
)

// TestEnv is what a tool acts on, in one run: fresh, and of nobody else. A world of Files
// alone needs nothing besides: how it is compared, how it fails and how somebody else
// changes it is known.
type TestEnv struct {
	// Files are those of the root workspace, by path, on a simulated disk that forgets
	// what was not synced. Nil: there is no such root.
	Files map[string]string

	// Process returns what a process on this world is made with beside that: roots,
	// drivers, schemes. It is called for each process, the first and those that come after a
	// crash.
	Process func() ([]agent.Option, error)
	// Exit takes away what a process had that has ended, as its system would: connections,
	// and the locks that they hold. Nil: nothing has to be.
	Exit func() error
	// Tool makes the tool anew for each process, acting on this world: what it kept in
	// memory is gone with the process before. Its declaration is that of the tool that is
	// graded. Nil: that one is used throughout, and finds its world by the context or by a
	// handle.
	Tool func() (tool.Tool, error)
	// Context gives what the tool finds in its context.
	Context func(context.Context) context.Context

	// Snapshot tells what is there, by the names of things: all that an undo has to bring
	// back as it was, and that somebody else may have put there.
	Snapshot func() (map[string]string, error)
	// Traces tells what an undo may leave behind, such as the entries of a ledger. A tool
	// that leaves any is compensable at best.
	Traces func() (map[string]string, error)
	// Foreign is what somebody else may do to what the call left, by name.
	Foreign map[string]func() error
	// Power is the power going: what the tool had not made durable is lost. Nil: nothing of
	// this world is.
	Power func()

	// Close ends the world.
	Close func() error
}

// ErrConnectionLost is what a request comes to whose answer is lost.
var ErrConnectionLost = errors.New("the connection broke")

// Wire stands between a tool and what it acts on: the fakes of a world tell it of each
// effect, and it lets that happen, or not, or later, as the fault of the run wants it.
// Without a run, as on the nil Wire, everything just happens.
//
// The context that is given is the one that the tool's code was called with; where a
// fake has another one, as the handler of a server has, the latest process counts.
// Nothing that a fault waits for may be locked meanwhile.
type Wire struct{ run *run }

// Send is an effect that somebody else has at the request of the tool. The request can
// be lost, and arrive late, even after its sender died; so can the answer. An error is to
// be returned to the tool as what the request came to.
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
		return ErrConnectionLost
	case faultAction(void):
		return nil
	case faultAction(lost):
		return ErrConnectionLost
	default:
		if p.ended() {
			stop(p)
		}
	}
	effect()
	return w.after(p, "the request "+what)
}

// Do is an effect of the tool's own process: it happens or it does not, and never after
// its process has died.
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
		return ErrConnectionLost
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

// stop is where the code of a process stands still that has died. Once the run is over
// its deferred functions run, on a world that nobody looks at any more.
func stop(p *process) {
	p.stopped()
	<-p.run.over
	runtime.Goexit()
}
