package startup

import (
	"context"
	"log/slog"
	"time"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// askedInterval is how often a process looks for what other nodes asked.
const askedInterval = time.Second

// Asked does what other nodes of a shared journal ask of this one, like
// remit revert and remit redo here. It does it as an owner of its own that ends
// with the work: what it leaves unfinished, the next process of the node completes.
type Asked struct {
	App     *cli.App
	Place   state.Workspace
	Journal journal.Journal // tells what is asked
	// EndPrompts ends the prompts of the workspace first. nil: the resident
	// process does it.
	EndPrompts func(ctx context.Context) error
}

// Do does what is asked now, and returns the answers. A journal that nodes do
// not share has no requests.
func (q Asked) Do(ctx context.Context) (done []revert.Request, err error) {
	requests, shared := q.Journal.(journal.Requests)
	if !shared {
		return nil, nil
	}
	if can, err := requests.CanTake(ctx); err != nil || !can {
		return nil, err
	}
	if q.EndPrompts != nil {
		err = q.EndPrompts(ctx)
	} else {
		_, err = EndPrompts(ctx, q.App, &q.Place, q.Journal)
	}
	if err != nil {
		return nil, err
	}
	err = WithRuntime(ctx, q.App, &q.Place, func(rt *agent.Runtime) error {
		done, err = rt.DoAsked(ctx)
		return err
	})
	return done, err
}

// log does what is asked, and logs the answers, and an error unless it is the
// last one.
func (q Asked) log(ctx context.Context, last string) (problem string) {
	to := slog.New(slog.NewTextHandler(q.App.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	done, err := q.Do(ctx)
	for _, d := range done {
		to.Warn("another node asked for this", "do", d.Verb(), "txn", d.Txn, "by", cli.Printable(d.By), "node", d.From, "result", cli.Printable(resultOf(d)))
	}
	if err == nil || ctx.Err() != nil {
		return ""
	}
	if problem = cli.PlainError(err); problem != last {
		to.Warn("what another node asked for could not be done", "error", problem, "try", q.Place.Hint("recover"))
	}
	return problem
}

func resultOf(q revert.Request) string {
	switch {
	case q.State == journal.RequestFailed:
		return "nothing was done: " + q.Why
	case q.Report != nil && !q.Report.Complete():
		return "incomplete"
	}
	return "complete"
}

// Serve does what is asked until the returned function is called, which waits
// for the end of the work.
func (q Asked) Serve(ctx context.Context) (stop func()) {
	if _, shared := q.Journal.(journal.Requests); !shared {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	q.Place.Moved = nil // a person named these folders for other work
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for problem := ""; ctx.Err() == nil; {
			problem = q.log(ctx, problem)
			pause, free := q.App.Host.WithTimeout(ctx, askedInterval, nil)
			<-pause.Done()
			free()
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
