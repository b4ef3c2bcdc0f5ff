package callstate

import (
	"context"
	"errors"
	"slices"
)

// ErrSecondCommit says that a call has at most one handle that commits by itself, since
// two could not be made to agree.
var ErrSecondCommit = errors.New("another handle of this call already commits by itself")

// partHandle is a handle, and the prefix of the part that opened it.
type partHandle struct {
	Handle

	of      string
	commits bool
}

// Join adds a handle that must be finished with the call. A second handle that
// commits by itself is refused.
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

// Part takes back that a handle joined which commits by itself, and which has had no
// effect and will have none: another may take its place. It reports whether the handle
// was still there; else the call has come to its end, and drops it by itself.
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

// Prepare prepares every handle: what they decide, ask and record happens now. On
// an error all are aborted, and nothing of them has happened.
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

// Finish makes the effects of the prepared handles final. On an error the handles
// that are not final are aborted.
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

// Abort drops what the handles have not made final, newest first.
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
