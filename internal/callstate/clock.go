package callstate

import (
	"context"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/host"
)

// Clock measures the time of a call's code. It is paused while the call waits
// for an approval, so that the wait does not count against the timeout of the
// tool. The nil Clock measures nothing. Its methods are safe for concurrent
// use.
type Clock struct {
	host  host.Host
	cause error

	mu      sync.Mutex // never held across a wait
	left    time.Duration
	since   time.Time // start of the current running period
	pauses  int
	periods int             // number of running periods so far
	ctx     context.Context //nolint:containedctx // context of the call; nil: not started
	end     context.CancelCauseFunc
	stop    func() // stops the running timer; nil: none runs
}

// NewClock returns a clock that has not started. Its context ends with cause.
func NewClock(h host.Host, limit time.Duration, cause error) *Clock {
	return &Clock{host: h, left: limit, cause: cause}
}

// Start derives the context that ends at the timeout.
func (k *Clock) Start(ctx context.Context) (context.Context, context.CancelFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ctx, k.end = context.WithCancelCause(ctx)
	k.run()
	return k.ctx, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.halt()
		k.end(context.Canceled)
	}
}

// Pause stops the clock until resume is called, which may be repeated.
func (k *Clock) Pause() (resume func()) {
	if k == nil {
		return func() {}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pauses++
	if k.pauses == 1 && k.stop != nil {
		k.left -= max(k.host.Now().Sub(k.since), 0) // the wall clock may jump
		k.halt()
	}
	return sync.OnceFunc(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.pauses--
		k.run()
	})
}

// run starts the timer; the caller holds the lock.
func (k *Clock) run() {
	if k.ctx == nil || k.pauses > 0 || k.ctx.Err() != nil {
		return
	}
	k.since = k.host.Now()
	k.periods++
	period := k.periods
	k.stop = host.AfterTimeout(k.ctx, k.host, k.left, func() { k.expire(period) })
}

// expire ends the context if the timer of the current period is over. A timer
// that was stopped too late belongs to an earlier one.
func (k *Clock) expire(period int) {
	k.mu.Lock()
	over := k.stop != nil && k.periods == period
	k.mu.Unlock()
	if over {
		k.end(k.cause)
	}
}

// halt stops the timer; the caller holds the lock.
func (k *Clock) halt() {
	if k.stop != nil {
		k.stop()
		k.stop = nil
	}
}
