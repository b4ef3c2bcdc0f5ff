package mcp

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
)

// backgroundCall is a call that can continue without a request that waits for
// it.
type backgroundCall struct {
	id    string
	st    *clientSession
	stop  context.CancelCauseFunc
	ended chan struct{}
	async *asyncCall
	call  string // of a task; the mutex of backgroundCalls guards it
}

// backgroundCalls holds the background calls of one server.
type backgroundCalls struct {
	mu  sync.Mutex // never held across a wait
	all map[string]*backgroundCall

	tasks map[string]*asyncCall // by call ID
}

var errGone = errors.New("the client has gone")

// begin runs a call of a client session apart from the request that begins it.
func (r *backgroundCalls) begin(ctx context.Context, one *backgroundCall, run func(ctx context.Context)) {
	going, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	one.stop, one.ended = stop, make(chan struct{})
	r.mu.Lock()
	if r.all == nil {
		r.all = map[string]*backgroundCall{}
	}
	r.all[one.id] = one
	r.mu.Unlock()
	go func() {
		defer r.remove(one.id)
		defer close(one.ended)
		defer stop(nil)
		deepen()
		run(going)
	}()
}

// deepen grows the stack of a new goroutine once, to the size that a call
// needs. Growing it step by step copies more.
//
//go:noinline
func deepen() byte {
	var room [40 << 10]byte
	return room[rand.IntN(len(room))]
}

func (r *backgroundCalls) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.all[id]
	delete(r.all, id)
	if t := one.async; t != nil && t.call != "" {
		delete(r.tasks, t.call)
	}
}

// name registers a running call as a task.
func (r *backgroundCalls) name(call string, t *asyncCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks == nil {
		r.tasks = map[string]*asyncCall{}
	}
	t.call, r.tasks[call] = call, t
}

// task returns a running task. The caller checks which session it belongs to.
func (r *backgroundCalls) task(call string) (*asyncCall, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.tasks[call]
	return t, ok
}

func (r *backgroundCalls) find(id string, st *clientSession) (*backgroundCall, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, ok := r.all[id]
	if !ok || one.st.session.ID() != st.session.ID() {
		return nil, false
	}
	return one, true
}

// end ends the calls of one client session, or all calls if it is nil.
func (r *backgroundCalls) end(ctx context.Context, of *clientSession) {
	for _, one := range r.of(of) {
		one.stop(errGone)
		select {
		case <-one.ended:
		case <-ctx.Done():
		}
	}
}

func (r *backgroundCalls) of(st *clientSession) (some []*backgroundCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if st == nil || one.st == st {
			some = append(some, one)
		}
	}
	return some
}
