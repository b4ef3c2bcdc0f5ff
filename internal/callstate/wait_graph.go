package callstate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// WaitGraph records which transactions of one runtime wait for which others, to
// detect a deadlock without waiting for a timeout. Waits in other processes are
// unknown, so only the deadline detects those. It also records the calls that
// have ended with operations in flight.
type WaitGraph struct {
	mu   sync.Mutex                // never held across a wait
	ends map[string]map[string]int // by waiting transaction: the transactions that it waits for, with the number of waiting calls

	lateCalls map[string]lateCall // by call that was cut off
}

// begin records that a transaction waits, unless the holder already waits for
// it, directly or indirectly.
func (w *WaitGraph) begin(txn, holder string) (end func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leads(holder, txn, map[string]bool{}) {
		return nil, false
	}
	if w.ends == nil {
		w.ends = map[string]map[string]int{}
	}
	if w.ends[txn] == nil {
		w.ends[txn] = map[string]int{}
	}
	w.ends[txn][holder]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.ends[txn][holder]--; w.ends[txn][holder] == 0 {
			delete(w.ends[txn], holder)
		}
		if len(w.ends[txn]) == 0 {
			delete(w.ends, txn)
		}
	}, true
}

func (w *WaitGraph) leads(from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for next := range w.ends[from] {
		if w.leads(next, to, seen) {
			return true
		}
	}
	return false
}

// The pauses between two checks whether a claim is free. There is no
// notification: another process may hold it.
const (
	shortestPause = 2 * time.Millisecond
	longestPause  = 100 * time.Millisecond
)

var (
	errPause = errors.New("the pause is over")
	errLate  = errors.New("waited long enough")
)

// Await claims a resource for the transaction. It waits for the end of another
// transaction that claims it, up to the call's claim timeout. Without a timeout
// it does nothing, and the first change is refused instead. Reads after it see
// what the holder left.
func (c *Call) Await(ctx context.Context, resource string) error {
	if c.cfg.ClaimTimeout <= 0 {
		return nil
	}
	h, txn := c.cfg.Recorder.Host(), c.cfg.Recorder.Txn()
	until, cancel := h.WithTimeout(ctx, c.cfg.ClaimTimeout, errLate)
	defer cancel()
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		err := c.claim(ctx, resource)
		var held *journal.ClaimedError
		if !errors.As(err, &held) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if until.Err() != nil {
			return fmt.Errorf("%w, which did not happen within %s", held, c.cfg.ClaimTimeout)
		}
		end, ok := c.cfg.Waits.begin(txn, held.Holder)
		if !ok {
			return fmt.Errorf("%w, and waits for this one: neither could go on", held)
		}
		err = c.pause(until, pause)
		end()
		if err != nil {
			return err
		}
	}
}

// claim does not write the call's start, because it may be refused often.
func (c *Call) claim(ctx context.Context, resource string) error {
	if err := c.order(ctx); err != nil {
		return err
	}
	defer c.writes.Unlock()
	return c.cfg.Recorder.Write(ctx, revert.Write{Claims: []string{resource}})
}

// pause returns after d, or when ctx ends.
func (c *Call) pause(ctx context.Context, d time.Duration) error {
	h := c.cfg.Recorder.Host()
	if err := h.Point(ctx, "line.await"); err != nil {
		return err
	}
	over, cancel := h.WithTimeout(ctx, d, errPause)
	defer cancel()
	<-over.Done()
	return nil
}
