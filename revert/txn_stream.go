package revert

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// stream is what the recorders of one transaction that was begun here know together.
type stream struct {
	acted atomic.Bool // something is written that more depends on than what somebody read

	turn    *host.Lock // of a beginning that is kept back: guards what is below; nil: it was not
	written atomic.Bool
	kept    journal.Batch // the beginning, and what came since
	kinds   string        // of its records
}

// Begin begins a transaction of the session and returns its recorder. If late
// is set, the record of the beginning is delayed: it is written with the first
// record that has a barrier, with the end of the transaction, or by Flush.
// Records before that are delayed too, so other processes do not see them.
func (r Recorder) Begin(ctx context.Context, txn string, late bool) (Recorder, error) {
	owner := r.journal.Owner()
	r = r.In(txn)
	r.stream = &stream{}
	if late {
		r.stream.turn = host.NewLock(r.host, "journal.begin")
	}
	// No barrier: the first durable record of the transaction carries it.
	return r, r.Write(ctx, Write{Records: []CallRecord{{Body: &record.Begun{Owner: owner}}}, Take: journal.OwnerChange{To: journal.Ownership{Txn: txn, Owner: owner}}})
}

// Commit writes that the transaction has ended and its effects stay.
//
// It has a barrier: it is the point of no return, and whoever is told of it relies on it. A transaction all of whose calls
// were pure has nothing that could return: no effect, no claim, no content, nothing that was held, and nobody's answer that
// was used up. What its calls raise for their session (labels, sums) has a barrier of its own. What a power cut can then take is the end of the journal:
// this record, or with it what was read. That leaves no transaction, or an open one, whose calls recovery ends as failed
// without effect and whose revert finds nothing to take back: less than happened, and nothing that did not. A result is still
// on the journal before anybody sees it, as that of any call which only reads: its process may be killed at any time.
func (r Recorder) Commit(ctx context.Context) error {
	//mutant:barrier
	return r.Write(ctx, Write{Records: []CallRecord{{Body: &record.Committed{}}}, End: true, Durable: r.stream == nil || r.stream.acted.Load()})
}

// Flush writes the delayed beginning of the transaction.
func (r Recorder) Flush(ctx context.Context) error {
	if !r.stream.keepsBack() {
		return nil
	}
	return r.Write(ctx, Write{})
}

func (s *stream) keepsBack() bool { return s != nil && s.turn != nil && !s.written.Load() }

// note takes in what is about to be written.
func (s *stream) note(w Write) {
	if s != nil && (w.Durable && !w.End || !onlyReads(w)) {
		s.acted.Store(true)
	}
}

// onlyReads reports whether what is written is of nothing but the reading of calls without effects. What is not known here
// is something else.
func onlyReads(w Write) bool {
	if len(w.Blobs)+len(w.Claims)+len(w.Erase) > 0 {
		return false
	}
	for _, l := range w.Records {
		switch b := l.Body.(type) {
		case *record.Begun, *record.Invalid, *record.Done, *record.Failed, *record.Verified, *record.Committed:
		case *record.Started:
			if b.Class != effect.Pure || b.Approval != nil { // an answer that was used up stays so
				return false
			}
		default:
			return false
		}
	}
	return true
}

// append writes a batch behind what was kept back, or keeps it back too. One at a time does so: what comes later must not
// overtake the beginning. Where the batch is refused, the beginning waits for the next one.
func (s *stream) append(ctx context.Context, r Recorder, b journal.Batch, kinds string, now bool) error {
	if err := s.turn.Lock(ctx); err != nil {
		return err
	}
	defer s.turn.Unlock()
	if s.written.Load() {
		return r.append(ctx, b, kinds)
	}
	b.Entries, kinds = slices.Concat(s.kept.Entries, b.Entries), s.kinds+kinds
	if s.kept.Take.To.Txn != "" {
		b.Take = s.kept.Take
	}
	if !now {
		s.kept, s.kinds = b, kinds
		return nil
	}
	if err := r.append(ctx, b, kinds); err != nil {
		return err
	}
	s.kept = journal.Batch{}
	s.written.Store(true)
	return nil
}
