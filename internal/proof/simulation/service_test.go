package simulation_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/remit-dev/remit/internal/proof/opcheck"
)

// service executes each request, unless the request has a key that it knows.
type service struct {
	mu     sync.Mutex          // never held across a wait
	orders map[string][]string // calls, by key
	tags   map[string]string   // keys, by tag
	there  map[string]bool     // by call: the effect is present
	barred map[string]bool     // cancelled keys: later requests are refused
	wire   []*request          // sent, and neither delivered nor lost
}

// request is a request to the service.
type request struct {
	key, call string
	tag       string
	keyed     bool
	cancel    bool
	arrived   bool
}

func newService() *service {
	return &service{orders: map[string][]string{}, tags: map[string]string{}, there: map[string]bool{}, barred: map[string]bool{}}
}

var errNoAnswer = errors.New("the connection broke")

// ask sends a request and waits for the response, which may never come: then it
// is unknown whether and when the request arrives.
func (w *simState) ask(ctx context.Context, r *request) error {
	a, _ := ctx.Value(actorKey{}).(*actor)
	fate := a.random.IntN(20)
	w.service.mu.Lock()
	if fate > 0 { // otherwise it is lost
		w.service.wire = append(w.service.wire, r)
	}
	w.service.mu.Unlock()
	w.sched.park(ctx, a.proc, "service.request")
	if fate > 4 {
		w.deliver(r) // the usual case: it takes no time
	}
	w.sched.park(ctx, a.proc, "service.answer")
	w.service.mu.Lock()
	arrived := r.arrived
	w.service.mu.Unlock()
	switch {
	case fate == 0:
		w.note("lost request", r.call)
	case !arrived:
		w.note("late request", r.call)
	case fate == 6:
		w.note("lost answer", r.call)
	default:
		return nil
	}
	return errNoAnswer
}

// deliver executes a request.
func (w *simState) deliver(r *request) {
	s := w.service
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.wire, r)
	if at < 0 {
		return
	}
	s.wire = slices.Delete(s.wire, at, at+1)
	r.arrived = true
	did := opcheck.Event{}
	switch {
	case r.cancel:
		s.barred[r.key] = true
		for _, call := range s.orders[r.key] {
			if s.there[call] {
				s.there[call] = false
				did = opcheck.Event{Kind: opcheck.Withdrawn, Key: call}
			}
		}
	case r.keyed && (s.barred[r.key] || len(s.orders[r.key]) > 0):
	default:
		s.orders[r.key] = append(s.orders[r.key], r.call)
		s.there[r.call], s.tags[r.tag] = true, r.key
		did = opcheck.Event{Kind: opcheck.Acted, Key: r.call}
	}
	if did.Kind != 0 {
		w.say(did)
	}
}

// arrive delivers one of the requests on the wire, if there is one.
func (w *simState) arrive(n int) bool {
	w.service.mu.Lock()
	if len(w.service.wire) == 0 {
		w.service.mu.Unlock()
		return false
	}
	r := w.service.wire[n%len(w.service.wire)]
	w.service.mu.Unlock()
	w.note("straggler", r.call)
	w.deliver(r)
	return true
}

// has reports whether the effect is present, and if not, whether it can still
// come.
func (s *service) has(tag string) (there, can bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, known := s.tags[tag]
	there = known && slices.ContainsFunc(s.orders[key], func(call string) bool { return s.there[call] })
	return there, !known || !s.barred[key]
}
