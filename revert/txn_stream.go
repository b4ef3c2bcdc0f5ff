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

// stream is the shared state of the recorders of one transaction that was begun
// here.
type stream struct {
	acted atomic.Bool // a record was written that matters beyond pure reads

	lock    *host.Lock // guards the fields below while the beginning is delayed; nil: it was not delayed
	written atomic.Bool
	kept    journal.Batch // the beginning and the later records
	kinds   string        // kinds of its records
}

// Begin begins a transaction of the session and returns its recorder. If late
// is set, the record of the beginning is delayed: it is written with the first
// record that has a barrier, with the end of the transaction, or by Flush.
// Records before that are delayed too, so other processes do not see them.
func (r Recorder) Begin(ctx context.Context, txn string, late bool) (Recorder, error) {
	return r.begin(ctx, txn, late, nil)
}

// Commit writes that the transaction has ended and that its effects stay.
//
// It has a barrier, because it is the point of no return and callers rely on
// it. A transaction whose calls were all pure needs none. It has no effect,
// claim, content, held call or used approval. Its additions to the session
// (labels, counters) have a barrier of their own.
//
// A power failure can then remove the end of the journal: this record, and
// perhaps the reads before it. That leaves no transaction, or an open one.
// Recovery ends its calls as failed without effect, and its revert finds
// nothing to revert. The journal then shows less than happened, and nothing
// that did not happen. A result is still on the journal before the caller sees
// it, as for any call that only reads, because its process may be killed at any
// time.
//
// The records of first are written in the same step, before it.
func (r Recorder) Commit(ctx context.Context, first ...CallRecord) error {
	records := append(first, CallRecord{Body: &record.Committed{}})
	//mutant:barrier
	return r.Write(ctx, Write{Records: records, End: true, Durable: r.stream == nil || r.stream.acted.Load()})
}

// OnlyReads reports whether the transaction was begun here, and none of its
// records says that it did more than read.
func (r Recorder) OnlyReads() bool { return r.stream != nil && !r.stream.acted.Load() }

// Flush writes the delayed beginning of the transaction.
func (r Recorder) Flush(ctx context.Context) error {
	if !r.stream.keepsBack() {
		return nil
	}
	return r.Write(ctx, Write{})
}

func (s *stream) keepsBack() bool { return s != nil && s.lock != nil && !s.written.Load() }

// note updates the state with the records that are about to be written.
func (s *stream) note(w Write) {
	if s != nil && (w.Durable && !w.End || !onlyReads(w)) {
		s.acted.Store(true)
	}
}

// onlyReads reports whether a write contains only records of calls without
// effects. An unknown kind counts as an effect.
func onlyReads(w Write) bool {
	if len(w.Blobs)+len(w.Claims)+len(w.Erase) > 0 {
		return false
	}
	for _, l := range w.Records {
		switch b := l.Body.(type) {
		case *record.Begun, *record.Prompted, *record.Invalid, *record.Done, *record.Failed, *record.Verified, *record.Committed:
		case *record.Started:
			if b.Class != effect.Pure || b.Approval != nil { // a used approval stays used
				return false
			}
		default:
			return false
		}
	}
	return true
}

// append writes a batch after the delayed records, or delays it too. One
// goroutine at a time does so: later records must not overtake the beginning.
// If the journal refuses the batch, the beginning waits for the next one.
func (s *stream) append(ctx context.Context, r Recorder, b journal.Batch, kinds string, now bool) error {
	if err := s.lock.Lock(ctx); err != nil {
		return err
	}
	defer s.lock.Unlock()
	if s.written.Load() {
		return r.append(ctx, b, appendPoint+kinds)
	}
	b.Entries, kinds = slices.Concat(s.kept.Entries, b.Entries), s.kinds+kinds
	if s.kept.Take.To.Txn != "" {
		b.Take = s.kept.Take
	}
	if !now {
		s.kept, s.kinds = b, kinds
		return nil
	}
	if err := r.append(ctx, b, appendPoint+kinds); err != nil {
		return err
	}
	s.kept = journal.Batch{}
	s.written.Store(true)
	return nil
}
