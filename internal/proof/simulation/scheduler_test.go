package simulation_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// actor is an agent, or a keeper. It has its own randomness, so that its next
// action does not depend on other actors.
type actor struct {
	id     int
	proc   *process
	random *rand.Rand
}

type actorKey struct{}

// gate is where a goroutine of an actor waits to continue.
type gate struct {
	proc  *process
	actor int
	what  string
	open  chan struct{}
}

// timer ends a context when the scheduler decides.
type timer struct {
	at     time.Duration
	proc   *process
	cancel context.CancelCauseFunc
	cause  error
}

// scheduler lets one goroutine continue at a time. Only the driver's goroutine
// picks.
type scheduler struct {
	random *rand.Rand
	steps  int
	clock  time.Duration
	trace  func(what string)

	mu      sync.Mutex // never held across a wait
	fresh   []*gate    // parked since the last step
	parked  []*gate
	stuck   []*gate // of dead processes
	timers  []*timer
	calls   []*timer // contexts of clients' requests, which they may cancel
	free    bool     // no goroutine parks any more
	closing bool     // and goroutines of dead processes end

	unordered bool // no goroutine parks, and no timer is struck: short times end at once
}

// park waits until the scheduler picks this goroutine.
func (s *scheduler) park(ctx context.Context, p *process, what string) {
	s.mu.Lock()
	if s.free && !p.ended {
		s.mu.Unlock()
		return
	}
	g := &gate{proc: p, actor: -1, what: what, open: make(chan struct{})}
	if a, ok := ctx.Value(actorKey{}).(*actor); ok {
		g.actor = a.id
	}
	closing := s.closing
	if !closing {
		s.fresh = append(s.fresh, g)
	}
	s.mu.Unlock()
	if !closing {
		<-g.open
	}
	s.mu.Lock()
	gone := s.closing && p.ended
	s.mu.Unlock()
	if gone {
		runtime.Goexit()
	}
}

// settle waits until all have parked, and sorts the new ones: Go decides the
// order of their arrival.
func (s *scheduler) settle() {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.fresh, func(a, b *gate) int {
		return cmp.Or(cmp.Compare(a.actor, b.actor), cmp.Compare(a.proc.id, b.proc.id), cmp.Compare(a.what, b.what))
	})
	for _, g := range s.fresh {
		if g.proc.ended {
			s.stuck = append(s.stuck, g)
		} else {
			s.parked = append(s.parked, g)
		}
	}
	s.fresh = nil
}

// step lets one parked goroutine of a running process continue; ok is false if
// there is none.
func (s *scheduler) step() (ok bool) {
	s.mu.Lock()
	var can []*gate
	for _, g := range s.parked {
		if !g.proc.stopped {
			can = append(can, g)
		}
	}
	if len(can) == 0 {
		s.mu.Unlock()
		return false
	}
	g := can[s.random.IntN(len(can))]
	s.parked = slices.DeleteFunc(s.parked, func(o *gate) bool { return o == g })
	s.steps++
	s.clock += time.Millisecond
	s.mu.Unlock()
	if s.trace != nil {
		s.trace(g.what)
	}
	close(g.open)
	return true
}

// removeProcess removes the gates of a dead process.
func (s *scheduler) removeProcess(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parked = slices.DeleteFunc(s.parked, func(g *gate) bool {
		if g.proc == p {
			s.stuck = append(s.stuck, g)
		}
		return g.proc == p
	})
}

// within derives a context that the scheduler may end.
func (s *scheduler) within(ctx context.Context, p *process, after time.Duration, cause error, into *[]*timer) (context.Context, context.CancelFunc) {
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &timer{at: s.clock + after, proc: p, cancel: cancel, cause: cause}
	if s.closing || s.unordered && after <= time.Second {
		cancel(cause)
	}
	*into = append(*into, t)
	return ctx, func() {
		s.mu.Lock()
		*into = slices.DeleteFunc(*into, func(o *timer) bool { return o == t })
		s.mu.Unlock()
		cancel(nil)
	}
}

// endTimer ends one of some contexts: the one with the earliest deadline, or any.
// It reports whether there was one.
func (s *scheduler) endTimer(from *[]*timer, first bool) bool {
	s.mu.Lock()
	var can []*timer
	for _, t := range *from {
		if !t.proc.stopped && !t.proc.ended {
			can = append(can, t)
		}
	}
	if len(can) == 0 {
		s.mu.Unlock()
		return false
	}
	t := can[0]
	for _, o := range can {
		if o.at < t.at {
			t = o
		}
	}
	if !first {
		t = can[s.random.IntN(len(can))]
	}
	*from = slices.DeleteFunc(*from, func(o *timer) bool { return o == t })
	s.clock = max(s.clock, min(t.at, s.clock+time.Second))
	s.mu.Unlock()
	t.cancel(t.cause)
	return true
}

// release lets all goroutines continue without parking: those of dead processes
// end.
func (s *scheduler) release() {
	s.mu.Lock()
	s.free, s.closing = true, true
	all := slices.Concat(s.fresh, s.parked, s.stuck)
	timers := slices.Concat(s.timers, s.calls)
	s.fresh, s.parked, s.stuck, s.timers, s.calls = nil, nil, nil, nil, nil
	s.mu.Unlock()
	for _, t := range timers {
		t.cancel(t.cause)
	}
	for _, g := range all {
		close(g.open)
	}
}
