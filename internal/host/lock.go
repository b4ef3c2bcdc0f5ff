package host

import (
	"context"
	"fmt"
)

// Lock is mutual exclusion that can be awaited with a context and held across
// I/O. Waiters get it in order of arrival. Its methods are safe for concurrent
// use; the zero Lock is not usable.
type Lock struct {
	host  Host
	id    string
	token chan struct{} // holds one token while the lock is free
}

// NewLock returns a free lock. The id names its scheduling point.
func NewLock(h Host, id string) *Lock {
	l := &Lock{host: h, id: id, token: make(chan struct{}, 1)}
	l.token <- struct{}{}
	return l
}

// NewClosedLock returns a held lock: Lock waits until Unlock.
func NewClosedLock(h Host, id string) *Lock {
	return &Lock{host: h, id: id, token: make(chan struct{}, 1)}
}

// Lock takes the lock. It returns the cause of the context's end, or the error
// of the scheduling point. A context that has ended always loses, also against
// a free lock, so the outcome never depends on the case that select picks. On
// error the lock is not held.
func (l *Lock) Lock(ctx context.Context) error {
	if err := l.host.Point(ctx, l.id); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return l.ended(ctx)
	}
	select {
	case <-l.token:
		return nil
	default:
		return l.wait(ctx)
	}
}

// wait blocks for the token. The goroutine that unlocks continues while this
// one wakes, so a second scheduling point keeps the two from running at the
// same time.
func (l *Lock) wait(ctx context.Context) error {
	select {
	case <-l.token:
	case <-ctx.Done():
		return l.ended(ctx)
	}
	if err := l.host.Point(ctx, l.id); err != nil {
		l.Unlock()
		return err
	}
	if ctx.Err() != nil {
		l.Unlock()
		return l.ended(ctx)
	}
	return nil
}

func (l *Lock) ended(ctx context.Context) error {
	return fmt.Errorf("lock %s: %w", l.id, context.Cause(ctx))
}

// Unlock gives the lock to the longest waiter. Any goroutine may call it for
// the holder. It panics if the lock is not held.
func (l *Lock) Unlock() {
	select {
	case l.token <- struct{}{}:
	default:
		panic("host: unlock of a free lock " + l.id)
	}
}
