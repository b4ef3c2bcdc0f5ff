package pipeline

import (
	"context"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// settled is a call whose result is on the journal. verify accepts nothing
// else.
type settled struct {
	delivered
	raw   []byte // redacted output of the tool
	shown []byte // redacted output that is delivered
}

// settle is step 7: it records the result, durably if the call can have had an
// effect. A result that is not on the journal is not returned.
func (l *Pipeline) settle(ctx context.Context, e delivered) (settled, *tool.Outcome) {
	ctx = lasting(ctx)
	// The states of its tools change in the same record that says that the call
	// is done.
	held, err := e.live.States()
	//mutant:barrier
	w := revert.Write{Durable: len(e.live.Changes()) > 0 || barrierBeforeExecute(e.tool) || l.counts(e.permitted), Blobs: held.Blobs, Claims: held.Claims}
	w.Records = append(e.live.Start(), held.Records...)
	s := settled{delivered: e}
	done, hidden := s.record()
	if err == nil {
		err = hidden
	}
	if err == nil {
		w.Records = append(w.Records, revert.CallRecord{Call: e.id, Body: done})
		noted := l.p.Facts.Note(e.id, e.tool, s.shown)
		err = l.p.Recorder.Write(ctx, w)
		noted()
	}
	if err != nil {
		l.journalFailed.Store(true)
		out := l.outcome(e.permitted, tool.StatusUnknown)
		out.Changes = viewChanges(e.live.Changes())
		out.Error = &tool.Problem{
			What: "the call ran, and the journal could not take its result", Why: err.Error(),
			Fix: "open the journal again and recover: what the call did is looked at then",
		}
		return settled{}, withText(out)
	}
	return s, nil
}

// record returns the record of the redacted result, and of what the filters
// made of it.
func (s *settled) record() (done *record.Done, err error) {
	if s.raw, err = s.redaction.result(s.output); err != nil {
		return nil, err
	}
	s.shown = s.raw
	done = &record.Done{Output: s.raw, OutputDigest: outputDigest(s.raw), Posts: s.live.Posts(), Ends: s.pass.end(), Undelivered: s.redaction.text(s.violation)}
	if s.replaced != nil {
		if s.shown, err = s.redaction.result(s.replaced); err != nil {
			return nil, err
		}
		done.Delivered, done.DeliveredDigest, done.DeliveredBy = s.shown, outputDigest(s.shown), s.by
	}
	return done, nil
}

func outputDigest(output []byte) string { return string(canon.Sum("remit/output/v1", output)) }
