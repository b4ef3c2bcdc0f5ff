package postgres

import (
	"slices"
	"sync"

	"github.com/remit-dev/remit/revert/journal"
)

// The largest transaction of an append. A batch of its own may be larger.
const (
	flushBatches = 1024
	flushBytes   = 16 << 20
)

// queue holds the batches that wait for the writer. Batches that arrive during
// one transaction share the next.
type queue struct {
	mu      sync.Mutex // guards the fields below; never held across a wait
	waiting []*request
	closed  bool
	wake    chan struct{} // has room for one
}

// request is a batch and its waiting caller.
type request struct {
	batch journal.Batch
	size  int
	end   chan error // has room for one
}

func newRequest(b journal.Batch) *request {
	r := &request{batch: b, end: make(chan error, 1)}
	for _, e := range b.Entries {
		r.size += len(e.Head) + len(e.Salt) + len(e.Body)
	}
	for _, blob := range b.Blobs {
		r.size += len(blob.Inline().OrEmpty())
	}
	return r
}

// join adds a request. It returns false if the journal is closing.
func (q *queue) join(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.waiting = append(q.waiting, r)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// leave removes a request whose caller no longer wants it. It returns false if
// the writer has taken it: then its outcome follows.
func (q *queue) leave(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// take takes the oldest requests that fit into one transaction. A batch that
// erases is alone, because it changes entries of earlier batches.
func (q *queue) take() (taken []*request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := 0
	for i, r := range q.waiting {
		erases := len(r.batch.Erase) > 0
		if size += r.size; i > 0 && (erases || i == flushBatches || size > flushBytes) {
			break
		}
		taken = append(taken, r)
		if erases {
			break
		}
	}
	q.waiting = slices.Delete(q.waiting, 0, len(taken))
	return taken
}

// close refuses later requests.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}
