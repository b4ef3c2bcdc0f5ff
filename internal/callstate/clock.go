package callstate

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/host"
)

// Clock is the time that the code of a call has. It stands still while the call waits
// for a person, so that the answer does not cost the tool its own time. The nil Clock
// counts nothing. Its methods are safe for concurrent use.
type Clock struct {
	host  host.Host
	cause error

	mu     sync.Mutex // never held across a wait
	left   time.Duration
	since  time.Time // when the part of it began that runs
	pauses int
	ctx    context.Context // of the call; nil: not started
	end    context.CancelCauseFunc
	stop   func() // of the timer that runs; nil: none does
}

// NewClock returns a clock that has not started. What it times ends with cause.
func NewClock(h host.Host, limit time.Duration, cause error) *Clock {
	return &Clock{host: h, left: limit, cause: cause}
}

// Start derives the context that ends when the time is up.
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

// Pause stops the clock until resume is called, once or more often.
func (k *Clock) Pause() (resume func()) {
	if k == nil {
		return func() {}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pauses++
	if k.pauses == 1 && k.stop != nil {
		k.left -= max(k.host.Now().Sub(k.since), 0) // the time of the day may jump
		k.halt()
	}
	return sync.OnceFunc(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.pauses--
		k.run()
	})
}

// run is called with the lock.
func (k *Clock) run() {
	if k.ctx == nil || k.pauses > 0 || k.ctx.Err() != nil {
		return
	}
	k.since = k.host.Now()
	timer, cancel := k.host.WithTimeout(k.ctx, k.left, k.cause)
	quiet := context.AfterFunc(timer, func() {
		if errors.Is(context.Cause(timer), k.cause) {
			k.end(k.cause)
		}
	})
	k.stop = func() {
		quiet()
		cancel()
	}
}

// halt is called with the lock.
func (k *Clock) halt() {
	if k.stop != nil {
		k.stop()
		k.stop = nil
	}
}
