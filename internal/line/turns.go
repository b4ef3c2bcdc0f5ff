package line

import (
	"context"
	"sync"

	"github.com/remit-dev/remit/internal/host"
)

// Turns lets the calls of one transaction change a resource one after the other.
// Between transactions the journal's claims do that.
type Turns struct {
	host host.Host
	mu   sync.Mutex // never held across a wait
	of   map[string]*turn
}

type turn struct {
	lock *host.Lock
	refs int
}

// NewTurns makes the turns of one transaction.
func NewTurns(h host.Host) *Turns { return &Turns{host: h, of: map[string]*turn{}} }

// Take waits for a resource and returns the function that gives it back. A call
// that takes a resource twice waits for itself.
func (t *Turns) Take(ctx context.Context, resource string) (release func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	mine := t.enter(resource)
	if err := mine.lock.Lock(ctx); err != nil {
		t.leave(resource)
		return nil, err
	}
	return sync.OnceFunc(func() {
		mine.lock.Unlock()
		t.leave(resource)
	}), nil
}

func (t *Turns) enter(resource string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine, ok := t.of[resource]
	if !ok {
		mine = &turn{lock: host.NewLock(t.host, "line.turn")}
		t.of[resource] = mine
	}
	mine.refs++
	return mine
}

func (t *Turns) leave(resource string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[resource].refs--; t.of[resource].refs == 0 {
		delete(t.of, resource)
	}
}
