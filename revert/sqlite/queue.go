package sqlite

import (
	"slices"
	"sync"

	"github.com/remit-dev/remit/revert/journal"
)

// queue is where batches wait for a transaction. One of those who wait leads: it
// stores what waits when its transaction begins, its own batch among them, and
// then passes the lead on. So there is no goroutine that somebody must start and
// stop, and a batch of one costs no hand-over.
type queue struct {
	mu      sync.Mutex // guards all below; nothing waits while it is held
	waiting []*request
	led     bool          // somebody leads, or was told to
	drained chan struct{} // made by drain, closed when nothing is left
}

// request is a batch and the caller that waits for it.
type request struct {
	batch journal.Batch
	alone bool        // it has no batch, and wants the lead for itself
	wake  chan signal // room for all that is ever sent: a turn to lead, and the end
	err   error       // the outcome, once told
}

type signal int

const (
	lead signal = iota
	told
)

func newRequest(b journal.Batch) *request { return &request{batch: b, wake: make(chan signal, 2)} }

// tell ends the waiting of a request that was taken.
func (r *request) tell(err error) {
	r.err = err
	r.wake <- told
}

// join lets a request wait. It reports false when the journal is being closed.
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

// leave takes a request back whose caller no longer wants it. It reports false
// when a leader has taken it: then its outcome is about to be told.
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

// passOn tells the oldest who waits to lead.
func (q *queue) passOn() {
	q.led = len(q.waiting) > 0
	switch {
	case q.led:
		q.waiting[0].wake <- lead
	case q.drained != nil:
		close(q.drained)
	}
}

// durable reports whether any batch that waits must be synced.
func (q *queue) durable() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.waiting, func(r *request) bool { return r.batch.Durable })
}

// take takes all batches that wait, those that need no sync only when synced is false.
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

// drain refuses whoever comes later and waits until nothing is left.
func (q *queue) drain() {
	q.mu.Lock()
	q.drained = make(chan struct{})
	if !q.led {
		close(q.drained)
	}
	q.mu.Unlock()
	<-q.drained
}

// putBack lets the leader's own request wait again, before all others.
func (q *queue) putBack(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.Insert(q.waiting, 0, r)
}
