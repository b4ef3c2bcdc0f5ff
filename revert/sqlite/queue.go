package sqlite

import (
	"slices"
	"sync"

	"github.com/remit-dev/remit/revert/journal"
)

// queue holds the batches that wait for a transaction. One of the waiting
// callers leads: it stores all batches that wait when its transaction begins,
// its own among them, and then passes the lead on. So there is no goroutine to
// start and stop, and a single batch needs no switch between goroutines.
type queue struct {
	mu      sync.Mutex // guards the fields below; nothing waits while it is held
	waiting []*request
	led     bool          // a request leads, or was told to
	drained chan struct{} // made by drain, closed when the queue is empty
}

// request is a batch and its waiting caller.
type request struct {
	batch  journal.Batch
	packed []byte      // the batch as a row, without its hashes
	alone  bool        // it has no batch, and wants the lead for itself
	wake   chan signal // buffered for all signals: one to lead, and one for the end
	err    error       // the outcome, once it is known
}

type signal int

const (
	lead signal = iota
	readContent
)

func newRequest(b journal.Batch) *request { return &request{batch: b, wake: make(chan signal, 2)} }

// pack encodes the batch before the caller waits, so that callers encode at
// the same time.
func (r *request) pack() *request {
	r.packed = pack(opsOf(r.batch), r.batch.Entries)
	return r
}

// finish ends the wait of a request that was taken.
func (r *request) finish(err error) {
	r.err = err
	r.wake <- readContent
}

// join adds a request. It returns false if the journal is closing.
func (q *queue) join(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.drained != nil {
		return false
	}
	q.waiting = append(q.waiting, r)
	if !q.led {
		q.passOn()
	}
	return true
}

// leave removes a request whose caller no longer wants it. It returns false if
// a leader has taken it: then its outcome follows soon.
func (q *queue) leave(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	select {
	case <-r.wake: // it was told to lead
		q.passOn()
	default:
	}
	return true
}

// resign ends a lead.
func (q *queue) resign() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passOn()
}

// passOn makes the oldest waiting request the leader.
func (q *queue) passOn() {
	q.led = len(q.waiting) > 0
	switch {
	case q.led:
		q.waiting[0].wake <- lead
	case q.drained != nil:
		close(q.drained)
	}
}

// durable reports whether any waiting batch must be synced.
func (q *queue) durable() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.waiting, func(r *request) bool { return r.batch.Durable })
}

// take takes all waiting batches. If synced is false, it takes only those that
// need no sync.
func (q *queue) take(synced bool) []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	var taken []*request
	q.waiting = slices.DeleteFunc(q.waiting, func(r *request) bool {
		takes := !r.alone && (synced || !r.batch.Durable)
		if takes {
			taken = append(taken, r)
		}
		return takes
	})
	return taken
}

// drain refuses later requests and waits until the queue is empty.
func (q *queue) drain() {
	q.mu.Lock()
	q.drained = make(chan struct{})
	if !q.led {
		close(q.drained)
	}
	q.mu.Unlock()
	<-q.drained
}

// putBack queues the leader's own request again, before all others.
func (q *queue) putBack(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.Insert(q.waiting, 0, r)
}
