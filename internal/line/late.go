package line

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/internal/host"
)

// straggler is a call that was cut off while operations of it are in flight.
type straggler struct {
	txn  string
	gate *host.Lock // opened when nothing of it is in flight any more
}

// late notes that a call was cut off.
func (w *Waits) late(h host.Host, txn, call string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stragglers == nil {
		w.stragglers = map[string]straggler{}
	}
	w.stragglers[call] = straggler{txn: txn, gate: host.NewClosedLock(h, "line.late")}
}

// over notes that nothing of a call is in flight any more.
func (w *Waits) over(call string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := w.stragglers[call]; ok {
		delete(w.stragglers, call)
		s.gate.Unlock()
	}
}

// Still waits until no operation of a call is in flight in this process. Who puts in
// order what the call left would else do so beside what is still doing it, and the two
// would take each other's files away. It fails with ErrInFlight when ctx ends.
func (w *Waits) Still(ctx context.Context, call string) error {
	return w.wait(ctx, func(id string, _ straggler) bool { return id == call })
}

// StillIn is Still for all calls of a transaction.
func (w *Waits) StillIn(ctx context.Context, txn string) error {
	return w.wait(ctx, func(_ string, s straggler) bool { return s.txn == txn })
}

func (w *Waits) wait(ctx context.Context, which func(call string, s straggler) bool) error {
	for {
		call, gate := w.find(which)
		if gate == nil {
			return nil
		}
		if err := gate.Lock(ctx); err != nil {
			return fmt.Errorf("call %s: %w, and still is: %w", call, ErrInFlight, err)
		}
		gate.Unlock() // for whoever else waits
	}
}

// find returns the first of the calls that are meant, by id: which one is waited for
// first must not depend on chance.
func (w *Waits) find(which func(call string, s straggler) bool) (call string, gate *host.Lock) {
	if w == nil {
		return "", nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, s := range w.stragglers {
		if which(id, s) && (gate == nil || id < call) {
			call, gate = id, s.gate
		}
	}
	return call, gate
}
