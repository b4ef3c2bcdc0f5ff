package mcp

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
)

// running is a call that goes on though no request waits for it.
type running struct {
	id    string
	st    *seat
	stop  context.CancelCauseFunc
	ended chan struct{}
	talk  *talk
	call  string // of a task; under the mutex of the runs
}

// runs are those of one server.
type runs struct {
	mu  sync.Mutex // never held across a wait
	all map[string]*running

	tasks map[string]*talk // by call
}

var errGone = errors.New("the client has gone")

// begin runs what is of a seat, apart from the request that begins it.
func (r *runs) begin(ctx context.Context, one *running, run func(ctx context.Context)) {
	going, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	one.stop, one.ended = stop, make(chan struct{})
	r.mu.Lock()
	if r.all == nil {
		r.all = map[string]*running{}
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

func (r *runs) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.all[id]
	delete(r.all, id)
	if t := one.talk; t != nil && t.call != "" {
		delete(r.tasks, t.call)
	}
}

// name makes a call that runs known as a task.
func (r *runs) name(call string, t *talk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks == nil {
		r.tasks = map[string]*talk{}
	}
	t.call, r.tasks[call] = call, t
}

// task finds a task that runs. Whoever asks knows whose it is.
func (r *runs) task(call string) (*talk, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.tasks[call]
	return t, ok
}

func (r *runs) find(id string, st *seat) (*running, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, ok := r.all[id]
	if !ok || one.st.in.ID() != st.in.ID() {
		return nil, false
	}
	return one, true
}

// end ends those of one seat, or, where it is nil, all.
func (r *runs) end(ctx context.Context, of *seat) {
	for _, one := range r.of(of) {
		one.stop(errGone)
		select {
		case <-one.ended:
		case <-ctx.Done():
		}
	}
}

func (r *runs) of(st *seat) (some []*running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if st == nil || one.st == st {
			some = append(some, one)
		}
	}
	return some
}
