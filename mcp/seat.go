package mcp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp/internal/raw"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/kind"
	"github.com/remit-dev/remit/tool"
)

// seat is a session that clients act in, with what the server knows of it beside the journal. All of it but what is going
// on right now is found again on the journal.
type seat struct {
	in    *agent.Session
	users int               // of seats, whose lock it is under
	token [sha256.Size]byte // digest of what proves the session; zero: it needs no proof, its client is the only one
	slots chan struct{}     // of calls that run

	introduction atomic.Pointer[introduction] // of the client that spoke last; nil: none did

	mu      sync.Mutex // never held across a wait
	open    map[string]bool
	current current
	waits   []waiting
	dealt   map[string]bool // calls whose answer is being taken right now
	rests   *lru.Cache[string, *raw.Slot]
	tasks   int          // calls that run as tasks
	here    int          // requests over HTTP
	bodies  room         // of its large requests over HTTP
	joined  []connection // that stay, of the older revisions, the one used last at the end
}

// waiting is a call of the session that waits for approval.
type waiting struct {
	txn, call, tool, input string // the input is canonical
	alone                  bool   // its transaction is of the call, and ends with it
}

func (s *Server) newSeat(ctx context.Context, in *agent.Session) (*seat, error) {
	st := &seat{in: in, slots: make(chan struct{}, s.opts.Calls), open: map[string]bool{}, dealt: map[string]bool{}}
	var err error
	if st.rests, err = lru.New[string, *raw.Slot](restsKept); err != nil {
		return nil, err
	}
	j := s.rt.Journal()
	for e, err := range j.Entries(ctx, journal.Query{Session: in.ID(), Kinds: []kind.Kind{kind.Asked}, Newest: true, Limit: s.opts.Txns}) {
		if err != nil {
			return nil, fmt.Errorf("mcp: what session %s waits for: %w", in.ID(), err)
		}
		t, c, err := revert.LoadCall(ctx, j, e.Header.Call)
		if err != nil {
			return nil, fmt.Errorf("mcp: what session %s waits for: %w", in.ID(), err)
		}
		if c.Phase == revert.PhasePending && t.End == "" && !t.Aborting {
			// A transaction of one call is of the call: nobody who began it by hand is told that it ends.
			st.open[t.ID] = true
			st.wait(waiting{txn: t.ID, call: c.Ref.Call, tool: c.Tool.Name, input: string(c.Asked.Input), alone: len(t.Calls) == 1 && !isCurrent(t)})
		}
	}
	if st.current, err = currentOf(ctx, j, in.ID()); st.current.txn != "" && !st.current.gone {
		st.open[st.current.txn] = true
	}
	return st, err
}

// keeps reports whether anything is open that is of this seat.
func (st *seat) keeps() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.open) > 0 || st.current.txn != ""
}

// What tasks left of another server's words, and the journal does not keep, is kept for a while: of so many, of so many bytes.
const (
	restsKept = 64
	restMost  = 64 << 10
)

func (st *seat) keep(call string, slot *raw.Slot) {
	if left := slot.Left(); slot.Refusal() == nil && len(left) > 0 && len(left) <= restMost {
		st.rests.Add(call, slot)
	}
}

func (st *seat) left(call string) (*raw.Slot, bool) { return st.rests.Get(call) }

// enter waits until one more call of the session may run.
func (st *seat) enter(ctx context.Context) (leave func(), err error) {
	select {
	case st.slots <- struct{}{}:
		return func() { <-st.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// large is the room of the session's large requests.
func (st *seat) large(share int64) room {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.bodies.Weighted == nil {
		st.bodies = newRoom(share)
	}
	return st.bodies
}

// come counts a request in, if there is room for one more.
func (st *seat) come(most int) bool { return st.count(&st.here, 1, most) }

func (st *seat) leave() { st.count(&st.here, -1, 0) }

func (st *seat) count(of *int, by, most int) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if by > 0 && *of+by > most {
		return false
	}
	*of += by
	return true
}

var errTooMany = errors.New("the session has as many transactions open as it may; commit or revert some")

// begin begins a transaction of the session.
func (st *seat) begin(ctx context.Context, most int) (*agent.Txn, error) {
	if !st.room(most) {
		return nil, errTooMany
	}
	tx, err := st.in.Begin(ctx)
	if err != nil {
		return nil, err
	}
	st.opened(tx.ID())
	return tx, nil
}

// opened notes that a transaction is open.
func (st *seat) opened(txn string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.open[txn] = true
}

// room reports whether one more may be.
func (st *seat) room(most int) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.open) < most
}

// ended notes that a transaction has ended.
func (st *seat) ended(txn string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.forget(txn)
	if st.current.txn == txn {
		st.current = current{}
	}
}

func (st *seat) forget(txn string) {
	delete(st.open, txn)
	st.waits = slices.DeleteFunc(st.waits, func(w waiting) bool { return w.txn == txn })
}

// waitingCall finds what is known of a call that waits.
func (st *seat) waitingCall(call string) (waiting, bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	i := slices.IndexFunc(st.waits, func(w waiting) bool { return w.call == call })
	if i < 0 {
		return waiting{}, false
	}
	return st.waits[i], true
}

// wait notes that a call waits; again is no matter.
func (st *seat) wait(w waiting) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.waits = slices.DeleteFunc(st.waits, func(other waiting) bool { return other.call == w.call })
	st.waits = append(st.waits, w)
}

// goesOn forgets that a call waits.
func (st *seat) goesOn(call string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.waits = slices.DeleteFunc(st.waits, func(w waiting) bool { return w.call == call })
}

// waitsFor finds the call that a repetition means: of the same tool with the same input, in the same transaction or in none.
func (st *seat) waitsFor(t tool.Tool, input []byte, txn string) (waiting, bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.waits) == 0 {
		return waiting{}, false
	}
	full, err := t.Complete(input)
	if err != nil {
		return waiting{}, false
	}
	for _, w := range st.waits {
		if w.tool == t.Name() && w.input == string(full) && (w.txn == txn || (txn == "" && w.alone)) {
			return w, true
		}
	}
	return waiting{}, false
}

// deal lets one at a time take the answer to a call.
func (st *seat) deal(call string) (done func(), ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.dealt[call] {
		return nil, false
	}
	st.dealt[call] = true
	return func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		delete(st.dealt, call)
	}, true
}
