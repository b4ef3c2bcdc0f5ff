package tool

import (
	"context"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
)

// settled is a call whose result is on the journal: the only thing that verify
// takes.
type settled struct {
	executed
	shown []byte // the output without what the policy redacts
}

// settle is step 5: the result, durable where the call can have had an effect.
// A result that is not on the journal is shown to nobody.
func (l *Line) settle(ctx context.Context, e executed) (settled, *Outcome) {
	ctx = context.WithoutCancel(ctx)
	//mutant:barrier
	w := revert.Write{Durable: len(e.live.Changes()) > 0 || barrierBeforeExecute(e.tool) || e.counts()}
	if s := e.live.Pending(); s != nil {
		w.Lines = append(w.Lines, revert.Line{Call: e.id, Body: s})
	}
	shown, err := e.veil.result(e.output)
	if err == nil {
		done := &revert.Done{Output: shown, OutputDigest: string(canon.Sum("remit/output/v1", shown)), Posts: e.live.Posts()}
		w.Lines = append(w.Lines, revert.Line{Call: e.id, Body: done})
		err = l.p.Recorder.Write(ctx, w)
	}
	if err != nil {
		l.broken.Store(true)
		out := l.outcome(e.permitted, StatusUnknown)
		out.Changes = viewChanges(e.live.Changes())
		out.Error = &Problem{
			What: "the call ran, and the journal could not take its result", Why: err.Error(),
			Fix: "open the journal again and recover: what the call did is looked at then",
		}
		return settled{}, out.withText()
	}
	return settled{executed: e, shown: shown}, nil
}
