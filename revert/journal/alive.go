package journal

import "context"

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
