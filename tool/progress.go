package tool

import (
	"context"
	"math"
)

// Progress is how far a call is, as its tool says.
type Progress struct {
	Call    string
	Tool    string
	Done    float64 // in any unit
	Total   float64 // 0: not known
	Message string  // of the tool: any text
}

// progress is where a call reports: whoever listens to all, and whoever asked for it; nil where nobody does. A report
// that is no number, or a listener that panics, is no reason for a call to fail.
func (l *Pipeline) progress(p permitted) func(done, total float64, message string) {
	var listeners []func(Progress)
	for _, listen := range []func(Progress){l.p.Progress, p.progress} {
		if listen != nil {
			listeners = append(listeners, listen)
		}
	}
	if listeners == nil {
		return nil
	}
	return func(done, total float64, message string) {
		report := Progress{Call: p.id, Tool: p.tool.Name(), Done: amount(done), Total: amount(total), Message: p.veil.text(message)}
		for _, listen := range listeners {
			tell(listen, report)
		}
	}
}

// startFunc is who is told that a call's code is about to run.
type startFunc = func(call string, keep func(context.Context) error, note func(ctx context.Context, key string, value any) error)

// begins tells that the code is about to run. A listener that panics is no reason for a call to fail.
func (i intended) begins() {
	if i.begun == nil {
		return
	}
	defer func() { _ = recover() }()
	within := func(ctx context.Context, do func() error) error {
		op, err := i.live.Enter(ctx)
		if err != nil {
			return err
		}
		defer op.Leave()
		return do()
	}
	i.begun(i.id, func(ctx context.Context) error {
		return within(ctx, func() error { return i.live.Keep(ctx) })
	}, func(ctx context.Context, key string, value any) error {
		return within(ctx, func() error { return i.live.Note(ctx, key, value) })
	})
}

func tell(listen func(Progress), p Progress) {
	defer func() { _ = recover() }()
	listen(p)
}

func amount(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return 0
	}
	return x
}
