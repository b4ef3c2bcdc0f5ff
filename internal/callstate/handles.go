package callstate

import (
	"context"
	"errors"
	"slices"
)

// ErrSecondCommit states that a call has at most one handle that commits by
// itself, because two independent commits are not atomic.
var ErrSecondCommit = errors.New("another handle of this call already commits by itself")

// partHandle is a handle, and the prefix of the part that opened it.
type partHandle struct {
	Handle

	of      string
	commits bool
}

// Join adds a handle that must be finished with the call. It refuses a second
// handle that commits by itself.
func (c *Call) Join(h Handle, commits bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return ErrClosed
	case commits && c.commits:
		return ErrSecondCommit
	}
	c.commits = c.commits || commits
	c.handles = append(c.handles, partHandle{h, c.prefix, commits})
	return nil
}

// Part removes a joined handle that commits by itself, and that has had no
// effect and will have none. Another may join then. It reports whether the
// handle was still joined. If not, the call has ended and aborts it.
func (c *Call) Part(h Handle) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.handles, func(j partHandle) bool { return j.Handle == h })
	if at < 0 {
		return false
	}
	c.handles, c.commits = slices.Delete(c.handles, at, at+1), false
	return true
}

// Prepare prepares every handle: their decisions, approval requests and records
// happen now. On an error it aborts all, and nothing of them has happened.
func (c *Call) Prepare(ctx context.Context) error {
	c.mu.Lock()
	handles := slices.Clone(c.handles)
	c.mu.Unlock()
	for _, h := range handles {
		if err := h.Prepare(ctx); err != nil {
			c.Abort(context.WithoutCancel(ctx))
			return err
		}
	}
	return nil
}

// Finish makes the effects of the prepared handles final. On an error it aborts
// the handles that are not final.
func (c *Call) Finish(ctx context.Context) error {
	handles := c.take()
	for i, h := range handles {
		if err := h.Finish(ctx); err != nil {
			abort(ctx, handles[i+1:])
			return err
		}
	}
	return nil
}

// Abort aborts the handles that are not final, newest first.
func (c *Call) Abort(ctx context.Context) { abort(ctx, c.take()) }

func (c *Call) take() []partHandle {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.handles
	c.handles = nil
	return h
}

func abort(ctx context.Context, handles []partHandle) {
	for i := len(handles) - 1; i >= 0; i-- {
		handles[i].Abort(ctx)
	}
}

func asDenied(err error, into **DeniedError) bool { return errors.As(err, into) }
