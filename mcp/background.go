package mcp

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
)

// backgroundCall is a call that goes on though no request waits for it.
type backgroundCall struct {
	id    string
	st    *clientSession
	stop  context.CancelCauseFunc
	ended chan struct{}
	talk  *asyncCall
	call  string // of a task; under the mutex of the runs
}

// backgroundCalls are those of one server.
type backgroundCalls struct {
	mu  sync.Mutex // never held across a wait
	all map[string]*backgroundCall

	tasks map[string]*asyncCall // by call
}

var errGone = errors.New("the client has gone")

// begin runs what is of a seat, apart from the request that begins it.
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

// deepen has the stack of a new goroutine grow once, to what a call takes, instead of by and by with all that is on it by then.
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
	if t := one.talk; t != nil && t.call != "" {
		delete(r.tasks, t.call)
	}
}

// name makes a call that runs known as a task.
func (r *backgroundCalls) name(call string, t *asyncCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks == nil {
		r.tasks = map[string]*asyncCall{}
	}
	t.call, r.tasks[call] = call, t
}

// task finds a task that runs. Whoever asks knows whose it is.
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

// end ends those of one seat, or, where it is nil, all.
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
