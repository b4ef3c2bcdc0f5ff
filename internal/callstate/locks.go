package callstate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
)

// ResourceLocks serializes changes of a resource by the calls of one
// transaction. It also covers enclosing and enclosed resources, such as a
// folder and a file in it. Between transactions the journal's claims do that.
//
// A call keeps a lock from its first change until it has ended, verified or
// reverted: two-phase locking. So no other call changes what its Verify reads,
// its changes are the newest when it is reverted, and calls of a transaction
// can be reverted one by one. A wait that would close a cycle is refused.
type ResourceLocks struct {
	host   host.Host
	mu     sync.Mutex                       // never held across a wait
	held   map[string]string                // the call that holds a resource
	shared map[string]*sharing              // who shares a held resource
	below  map[string]map[string]bool       // held resources below a resource
	own    map[string]map[string]*host.Lock // by call and resource: locks for the call's own operations
	queue  []*lockWaiter                    // in the order of arrival
	then   map[string][]func()              // by call: run after its end
}

// sharing are the calls that hold one resource together.
type sharing struct {
	group string
	calls map[string]bool
}

// lockWaiter is an operation that waits for other calls.
type lockWaiter struct {
	call, resource string
	group          string
	gate           *host.Lock // opened once, by the call that releases the resource
	refused        error      // set before gate opens
}

// DeadlockError refuses a wait that would never end.
type DeadlockError struct{ Resource, Holder string }

func (e *DeadlockError) Error() string {
	return fmt.Sprintf("call %s of the same transaction is changing %s and waits for this one; do one after the other", e.Holder, e.Resource)
}

// NewResourceLocks creates the locks of one transaction.
func NewResourceLocks(h host.Host) *ResourceLocks {
	return &ResourceLocks{host: h, held: map[string]string{}, shared: map[string]*sharing{}, below: map[string]map[string]bool{}, own: map[string]map[string]*host.Lock{}, then: map[string][]func(){}}
}

// Take waits until no other call and no other operation of this call has the
// resource. It returns the function that ends the operation. The call keeps the
// resource until Leave. An operation that takes a resource twice waits for
// itself.
func (t *ResourceLocks) Take(ctx context.Context, call, resource string) (release func(), err error) {
	return t.TakeShared(ctx, call, resource, "")
}

// TakeShared is Take, but the call shares the resource with all calls that take
// it by the same group. It excludes all others. An empty group is the call alone.
func (t *ResourceLocks) TakeShared(ctx context.Context, call, resource, group string) (release func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	own := t.within(call, resource)
	if err := own.Lock(ctx); err != nil {
		return nil, err
	}
	if err := t.takeOver(ctx, call, resource, group); err != nil {
		own.Unlock()
		return nil, err
	}
	return sync.OnceFunc(own.Unlock), nil
}

func (t *ResourceLocks) within(call, resource string) *host.Lock {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.own[call] == nil {
		t.own[call] = map[string]*host.Lock{}
	}
	own, ok := t.own[call][resource]
	if !ok {
		own = host.NewLock(t.host, "line.operation")
		t.own[call][resource] = own
	}
	return own
}

// takeOver makes a call the holder of a resource, if it is not yet.
func (t *ResourceLocks) takeOver(ctx context.Context, call, resource, group string) error {
	w, err := t.join(call, resource, group)
	if w == nil || err != nil {
		return err
	}
	if err := w.gate.Lock(ctx); err != nil && t.leaves(w) {
		return err
	}
	return w.refused // if the caller gave up at the same time, its next step detects that
}

// join makes the call the holder immediately, or returns a waiter.
func (t *ResourceLocks) join(call, resource, group string) (*lockWaiter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.shared[resource]; s != nil && group != "" && s.group == group {
		return nil, t.share(s, call, resource)
	}
	others := t.others(call, resource)
	if len(others) == 0 {
		return nil, t.hold(call, resource, group)
	}
	for _, o := range others {
		if t.waitsFor(o, call, map[string]bool{}) {
			return nil, &DeadlockError{Resource: resource, Holder: o}
		}
	}
	w := &lockWaiter{call: call, resource: resource, group: group, gate: host.NewClosedLock(t.host, "line.turn")}
	t.queue = append(t.queue, w)
	return w, nil
}

// leaves removes a waiter from the queue; false: it already got the resource.
func (t *ResourceLocks) leaves(w *lockWaiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.queue {
		if other == w {
			t.queue = append(t.queue[:i:i], t.queue[i+1:]...)
			return true
		}
	}
	return false
}

// others returns the calls that hold a resource that excludes this one.
func (t *ResourceLocks) others(call, resource string) (calls []string) {
	add := func(at string) {
		if s := t.shared[at]; s != nil {
			if !s.calls[call] {
				calls = slices.AppendSeq(calls, maps.Keys(s.calls))
			}
			return
		}
		if holder, ok := t.held[at]; ok && holder != call {
			calls = append(calls, holder)
		}
	}
	add(resource)
	for above := range revert.Ancestors(resource) {
		add(above)
	}
	for at := range t.below[resource] {
		add(at)
	}
	return calls
}

// waitsFor reports whether a call waits for another, directly or indirectly.
func (t *ResourceLocks) waitsFor(from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for _, w := range t.queue {
		if w.call != from {
			continue
		}
		for _, next := range t.others(from, w.resource) {
			if t.waitsFor(next, to, seen) {
				return true
			}
		}
	}
	return false
}

// hold gives a call a resource, unless its waiters would then close a cycle
// with another operation of the call.
func (t *ResourceLocks) hold(call, resource, group string) error {
	if s := t.shared[resource]; s != nil && s.calls[call] || t.held[resource] == call {
		return nil
	}
	t.held[resource] = call
	if group != "" {
		t.shared[resource] = &sharing{group: group, calls: map[string]bool{call: true}}
	}
	for above := range revert.Ancestors(resource) {
		if t.below[above] == nil {
			t.below[above] = map[string]bool{}
		}
		t.below[above][resource] = true
	}
	if o := t.cycle(call); o != "" {
		t.free(resource)
		return &DeadlockError{Resource: resource, Holder: o}
	}
	return nil
}

// share adds a call to those that share a resource, with the same exception.
func (t *ResourceLocks) share(s *sharing, call, resource string) error {
	if s.calls[call] {
		return nil
	}
	s.calls[call] = true
	if o := t.cycle(call); o != "" {
		delete(s.calls, call)
		return &DeadlockError{Resource: resource, Holder: o}
	}
	return nil
}

// cycle returns a call that waits for this one, while another operation of this
// one waits for it; empty: there is none.
func (t *ResourceLocks) cycle(call string) string {
	for _, w := range t.queue {
		if w.call != call {
			continue
		}
		for _, o := range t.others(call, w.resource) {
			if t.waitsFor(o, call, map[string]bool{}) {
				return o
			}
		}
	}
	return ""
}

// Then runs f when a call releases its locks, after it was verified or
// reverted, newest first. It reports whether f will run.
func (t *ResourceLocks) Then(call string, f func()) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.then[call] = append(t.then[call], f)
	return true
}

// Leave releases all locks of a call. The call has ended: none of its
// operations runs or waits.
func (t *ResourceLocks) Leave(call string) {
	if t == nil {
		return
	}
	for _, f := range slices.Backward(t.leave(call)) {
		f()
	}
}

func (t *ResourceLocks) leave(call string) []func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	then := t.then[call]
	delete(t.then, call)
	for resource, s := range t.shared {
		if delete(s.calls, call); len(s.calls) == 0 {
			t.free(resource)
		} else {
			for t.held[resource] = range s.calls { // one of them
				break
			}
		}
	}
	for resource, holder := range t.held {
		if holder == call {
			t.free(resource)
		}
	}
	delete(t.own, call)
	for i := 0; i < len(t.queue); {
		w := t.queue[i]
		if len(t.others(w.call, w.resource)) > 0 {
			i++
			continue
		}
		t.queue = append(t.queue[:i:i], t.queue[i+1:]...)
		w.refused = t.hold(w.call, w.resource, w.group)
		w.gate.Unlock()
	}
	return then
}

func (t *ResourceLocks) free(resource string) {
	delete(t.held, resource)
	delete(t.shared, resource)
	for above := range revert.Ancestors(resource) {
		if delete(t.below[above], resource); len(t.below[above]) == 0 {
			delete(t.below, above)
		}
	}
}
