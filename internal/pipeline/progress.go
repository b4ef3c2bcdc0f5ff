package pipeline

import (
	"context"
	"math"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/tool"
)

// progress returns the function that reports progress to the listeners, or nil
// if there are none. A report that is not a number, or a listener that panics,
// does not fail the call.
func (l *Pipeline) progress(p *permitted) func(done, total float64, message string) {
	if l.p.Progress == nil && p.progress == nil {
		return nil
	}
	var listeners []func(tool.Progress)
	for _, listen := range []func(tool.Progress){l.p.Progress, p.progress} {
		if listen != nil {
			listeners = append(listeners, listen)
		}
	}
	return func(done, total float64, message string) {
		report := tool.Progress{Call: p.id, Tool: p.tool.Name(), Done: amount(done), Total: amount(total), Message: p.redaction.text(message)}
		for _, listen := range listeners {
			reportProgress(listen, report)
		}
	}
}

// startFunc is the type of Request.OnStart.
type startFunc = func(call string, keep func(context.Context) error, note func(ctx context.Context, key string, value any) error)

// begins calls OnStart before the code runs. A listener that panics does not
// fail the call.
func (i intended) begins() {
	if i.begun != nil {
		begins(i.id, i.live, i.begun)
	}
}

func begins(id string, live *callstate.Call, begun startFunc) {
	defer func() { _ = recover() }()
	within := func(ctx context.Context, do func() error) error {
		op, err := live.Enter(ctx)
		if err != nil {
			return err
		}
		defer op.Leave()
		return do()
	}
	begun(id, func(ctx context.Context) error {
		return within(ctx, func() error { return live.Keep(ctx) })
	}, func(ctx context.Context, key string, value any) error {
		return within(ctx, func() error { return live.Note(ctx, key, value) })
	})
}

func reportProgress(listen func(tool.Progress), p tool.Progress) {
	defer func() { _ = recover() }()
	listen(p)
}

func amount(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return 0
	}
	return x
}
