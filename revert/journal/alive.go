package journal

import (
	"context"
	"sync"
)

// LooksAlive reports whether an owner seems to live, for what is only shown or
// skipped. Before a process does the work of a dead owner, it must ask Alive: on
// a journal in a database, Alive ends an owner whose connection is lost, so that
// it cannot continue; LooksAlive lets it connect again.
func LooksAlive(ctx context.Context, j Journal, owner string) (bool, error) {
	if l, ok := j.(interface {
		LooksAlive(ctx context.Context, owner string) (bool, error)
	}); ok {
		return l.LooksAlive(ctx, owner)
	}
	return j.Alive(ctx, owner)
}

// Lifetime is how long an opening of a journal can append. The zero value is a
// life that has not ended.
type Lifetime struct {
	begin sync.Once
	life  context.Context //nolint:containedctx // it is the value
	end   context.CancelCauseFunc
}

// Context ends, with its cause, when the opening can append no more.
func (l *Lifetime) Context() context.Context {
	l.begin.Do(func() { l.life, l.end = context.WithCancelCause(context.Background()) })
	return l.life
}

// End ends it. Only the first cause counts.
func (l *Lifetime) End(cause error) {
	l.Context()
	l.end(cause)
}

// OnFailure calls tell once, with the reason, when an opening can append no more
// while it is open: a server that keeps it must open the journal again, or end.
// stop releases what it holds. A journal that cannot fail never calls it.
func OnFailure(j Journal, tell func(error)) (stop func()) {
	l, ok := j.(interface{ Life() context.Context })
	if !ok {
		return func() {}
	}
	life := l.Life()
	detach := context.AfterFunc(life, func() { tell(context.Cause(life)) })
	return func() { detach() }
}
