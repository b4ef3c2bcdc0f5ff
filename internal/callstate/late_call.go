package callstate

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/internal/host"
)

// lateCall is a call that was cut off while its operations are in flight.
type lateCall struct {
	txn  string
	gate *host.Lock // opened after its last operation has ended
}

// late records that a call was cut off.
func (w *WaitGraph) late(h host.Host, txn, call string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lateCalls == nil {
		w.lateCalls = map[string]lateCall{}
	}
	w.lateCalls[call] = lateCall{txn: txn, gate: host.NewClosedLock(h, "line.late")}
}

// over records that the last operation of a call has ended.
func (w *WaitGraph) over(call string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := w.lateCalls[call]; ok {
		delete(w.lateCalls, call)
		s.gate.Unlock()
	}
}

// Still waits until no operation of a call is in flight in this process. A
// concurrent recovery and an operation would remove each other's files. Still
// fails with ErrInFlight when ctx ends.
func (w *WaitGraph) Still(ctx context.Context, call string) error {
	return w.wait(ctx, func(id string, _ lateCall) bool { return id == call })
}

// StillIn is Still for all calls of a transaction.
func (w *WaitGraph) StillIn(ctx context.Context, txn string) error {
	return w.wait(ctx, func(_ string, s lateCall) bool { return s.txn == txn })
}

func (w *WaitGraph) wait(ctx context.Context, which func(call string, s lateCall) bool) error {
	for {
		call, gate := w.find(which)
		if gate == nil {
			return nil
		}
		if err := gate.Lock(ctx); err != nil {
			return fmt.Errorf("call %s: %w, and still is: %w", call, ErrInFlight, err)
		}
		gate.Unlock() // for the other waiters
	}
}

// find returns the first matching call, by ID, so that the order of waiting is
// deterministic.
func (w *WaitGraph) find(which func(call string, s lateCall) bool) (call string, gate *host.Lock) {
	if w == nil {
		return "", nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, s := range w.lateCalls {
		if which(id, s) && (gate == nil || id < call) {
			call, gate = id, s.gate
		}
	}
	return call, gate
}
