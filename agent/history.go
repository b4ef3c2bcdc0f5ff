package agent

import (
	"errors"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// maxPastIndexes bounds the patterns that a session has an index of. A session
// with more of them makes some again.
const maxPastIndexes = 256

// errErasedPast is the answer if an erased call decides.
var errErasedPast = errors.New("an earlier call can match, whose record was erased")

// pastCalls holds every call of a session that ended, and an index for each
// pattern that a policy asked about. So a question costs as much after 10,000
// calls as after ten: an index is made once, and then follows the calls.
type pastCalls struct {
	mu      sync.Mutex  // never held across a wait
	ordered []*pastCall // by order
	counted []*pastCall // as they were counted: a snapshot has the first of them
	files   map[string][]*pastCall
	indexes map[string]*pastIndex
}

// pastCall is one ended call. It never changes.
type pastCall struct {
	endedCall
	seen perm.PastCall
	n    int // position among the counted ones
}

// pastIndex holds the calls that match a pattern, in order.
type pastIndex struct {
	pattern perm.CallPattern
	match   []*pastCall
	unknown []*pastCall // what was erased of them decides
}

// add counts an ended call. A call that was invalid or waits did not happen.
func (p *pastCalls) add(h endedCall, c *reservedCall) {
	if h.status == tool.StatusInvalid || h.status == tool.StatusPending {
		return
	}
	outcome := h.status
	if outcome == tool.StatusHeld { // as the counts have it
		outcome = tool.StatusDone
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	one := &pastCall{endedCall: h, n: len(p.counted), seen: perm.PastCall{Tool: h.tool, Outcome: string(outcome), Effect: c.class, Resources: c.resources, At: h.at}}
	p.counted = append(p.counted, one)
	p.ordered = inserted(p.ordered, one)
	if p.files == nil {
		p.files, p.indexes = map[string][]*pastCall{}, map[string]*pastIndex{}
	}
	for _, r := range one.seen.Resources {
		p.files[r] = inserted(p.files[r], one)
	}
	if one.seen.Resources == nil {
		p.files[""] = inserted(p.files[""], one)
	}
	for _, index := range p.indexes {
		index.add(one)
	}
}

// inserted adds a call to a list in order. Usually it is the newest.
func inserted(list []*pastCall, one *pastCall) []*pastCall {
	at := len(list)
	for at > 0 && order(list[at-1].endedCall, one.endedCall) > 0 {
		at--
	}
	return slices.Insert(list, at, one)
}

func (x *pastIndex) add(one *pastCall) {
	switch matches, known := x.pattern.Matches(&one.seen); {
	case !known:
		x.unknown = inserted(x.unknown, one)
	case matches:
		x.match = inserted(x.match, one)
	}
}

// index returns the index of a pattern. The caller holds the lock.
func (p *pastCalls) index(of perm.CallPattern) *pastIndex {
	key := of.Key()
	if x := p.indexes[key]; x != nil {
		return x
	}
	x := &pastIndex{pattern: of}
	candidates := p.ordered
	if file := of.File(); file != "" { // a pattern with the file of each call is new for each call
		candidates = p.files[file]
		for _, one := range p.files[""] {
			x.add(one)
		}
	}
	for _, one := range candidates {
		x.add(one)
	}
	if p.indexes == nil {
		p.indexes = map[string]*pastIndex{}
	}
	for old := range p.indexes {
		if len(p.indexes) < maxPastIndexes {
			break
		}
		delete(p.indexes, old)
	}
	p.indexes[key] = x
	return x
}

// snapshot returns the calls that were counted so far.
func (p *pastCalls) snapshot() pastSnapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return pastSnapshot{p, len(p.counted)}
}

// pastSnapshot answers from the first n calls that were counted. It implements
// perm.HistorySource.
type pastSnapshot struct {
	calls *pastCalls
	n     int
}

// Count implements perm.HistorySource.
func (s pastSnapshot) Count(p perm.CallPattern, w perm.CallWindow, now time.Time) (int, error) {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	x := s.calls.index(p)
	from := s.first(w, now)
	if s.within(x.unknown, from) > 0 {
		return 0, errErasedPast
	}
	return s.within(x.match, from), nil
}

// first returns a function that reports whether a call is in the window, which
// is the end of each list.
func (s pastSnapshot) first(w perm.CallWindow, now time.Time) func(*pastCall) bool {
	if w.Span() > 0 {
		begin := now.Add(-w.Span())
		return func(c *pastCall) bool { return c.at.After(begin) }
	}
	if w.Calls() == 0 || w.Calls() >= s.n {
		return func(*pastCall) bool { return true }
	}
	left := w.Calls()
	for _, c := range slices.Backward(s.calls.ordered) {
		if c.n >= s.n {
			continue
		}
		if left--; left == 0 {
			return func(d *pastCall) bool { return order(d.endedCall, c.endedCall) >= 0 || d == c }
		}
	}
	return func(*pastCall) bool { return true }
}

// within counts the calls of a list in a window, without those that ended after
// the snapshot. These are few: they ended while a call was decided.
func (s pastSnapshot) within(list []*pastCall, in func(*pastCall) bool) int {
	begin := sort.Search(len(list), func(i int) bool { return in(list[i]) })
	n := len(list) - begin
	for _, late := range s.calls.counted[s.n:] {
		at, found := slices.BinarySearchFunc(list[begin:], late, func(a, b *pastCall) int {
			if a == b {
				return 0
			}
			return order(a.endedCall, b.endedCall)
		})
		if found && list[begin+at] == late {
			n--
		}
	}
	return n
}

// Before implements perm.HistorySource.
func (s pastSnapshot) Before(a, b perm.CallPattern) (bool, error) {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	x, y := s.calls.index(a), s.calls.index(b)
	if s.last(x.unknown) != nil || s.last(y.unknown) != nil {
		return false, errErasedPast
	}
	first, then := s.last(x.match), s.last(y.match)
	return first != nil && then != nil && first != then && order(first.endedCall, then.endedCall) < 0, nil
}

func (s pastSnapshot) last(list []*pastCall) *pastCall {
	for _, c := range slices.Backward(list) {
		if c.n < s.n {
			return c
		}
	}
	return nil
}
