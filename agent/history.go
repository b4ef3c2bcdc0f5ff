package agent

import (
	"encoding/json"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/remit-dev/remit/history"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/pastcall"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// maxPastIndexes bounds the patterns that a session has an index of. A session
// with more of them makes some again.
const maxPastIndexes = 256

// maxPastSums bounds the arguments of which an index holds sums.
const maxPastSums = 16

// pastCalls holds every call of a session that ended, and an index for each
// pattern that a policy asked about. So a question costs as much after 10,000
// calls as after ten: an index is made once, and then follows the calls.
type pastCalls struct {
	mu      sync.Mutex             // never held across a wait
	ordered []*pastCall            // by order
	counted []*pastCall            // as they were counted: a snapshot has the first of them
	places  map[string][]*pastCall // by the place of a resource; empty: the resources are unknown
	tools   map[string][]*pastCall
	indexes map[history.Query]*pastIndex // by the pattern of a query
}

// pastCall is one ended call. It never changes; another replaces it when the
// call is erased.
type pastCall struct {
	endedCall
	seen history.Call
	n    int // position among the counted ones
}

// pastIndex holds the calls that match a pattern, in order.
type pastIndex struct {
	pattern pastcall.Pattern
	match   []*pastCall
	unknown []*pastCall // what was erased of them decides
	sums    map[string]*pastSums
}

// pastSums holds sums of one argument of the calls of an index.
type pastSums struct {
	argument string
	upTo     []canon.Amount // sum of the first calls that match, with this one
	bad      []*pastCall    // calls with an argument that has no amount; they add nothing to upTo
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
	one := &pastCall{endedCall: h, seen: history.Call{Tool: h.tool, Outcome: string(outcome), Effect: c.class, Resources: c.resources, Args: c.args, At: h.at}}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(one)
	for _, index := range p.indexes {
		index.add(one)
	}
}

// erase forgets what the erased record of a call said, as a reader of the
// journal does not find it either.
func (p *pastCalls) erase(call string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.counted, func(c *pastCall) bool { return c.call == call })
	if at < 0 {
		return
	}
	one := *p.counted[at]
	one.seen.Resources, one.seen.Args = nil, nil
	if one.status == tool.StatusDenied {
		one.seen.Effect = ""
	}
	all := slices.Clone(p.counted)
	all[at] = &one
	p.counted, p.ordered, p.places, p.tools, p.indexes = nil, nil, nil, nil, nil
	for _, c := range all {
		p.count(c)
	}
}

// count adds a call to the lists that new indexes are made from. The caller
// holds the lock.
func (p *pastCalls) count(one *pastCall) {
	one.n = len(p.counted)
	p.counted = append(p.counted, one)
	p.ordered, _ = inserted(p.ordered, one)
	if p.places == nil {
		p.places, p.tools = map[string][]*pastCall{}, map[string][]*pastCall{}
	}
	p.tools[one.seen.Tool], _ = inserted(p.tools[one.seen.Tool], one)
	for _, place := range placesOf(one.seen.Resources) {
		p.places[place], _ = inserted(p.places[place], one)
	}
}

// placesOf returns the places of resources, each once, or only an empty one if
// they are not known.
func placesOf(resources []string) (places []string) {
	for _, text := range resources {
		r, err := perm.ParseResource(text)
		if err != nil {
			return []string{""}
		}
		if place := pastcall.Place(r); !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	if resources == nil {
		return []string{""}
	}
	return places
}

// inserted adds a call to a list in order, and returns its position. Usually
// the call is the newest.
func inserted(list []*pastCall, one *pastCall) ([]*pastCall, int) {
	at := len(list)
	for at > 0 && order(list[at-1].endedCall, one.endedCall) > 0 {
		at--
	}
	return slices.Insert(list, at, one), at
}

func (x *pastIndex) add(one *pastCall) {
	switch matches, known := x.pattern.Matches(&one.seen); {
	case !known:
		x.unknown, _ = inserted(x.unknown, one)
	case matches:
		var at int
		x.match, at = inserted(x.match, one)
		for _, s := range x.sums {
			s.add(x.match, at, one)
		}
	}
}

// sum returns the sums of an argument. The caller holds the lock.
func (x *pastIndex) sum(argument string) *pastSums {
	if s := x.sums[argument]; s != nil {
		return s
	}
	s := &pastSums{argument: argument}
	for i, one := range x.match {
		s.add(x.match[:i+1], i, one)
	}
	if x.sums == nil {
		x.sums = map[string]*pastSums{}
	}
	makeRoom(x.sums, maxPastSums)
	x.sums[argument] = s
	return s
}

// amount returns the argument of a call, or 0 for one of the bad ones.
func (s *pastSums) amount(one *pastCall) canon.Amount {
	a, _ := pastcall.Amount(one.seen.Args, s.argument)
	return a
}

// add adds the call at a position of the calls that match.
func (s *pastSums) add(match []*pastCall, at int, one *pastCall) {
	if _, err := pastcall.Amount(one.seen.Args, s.argument); err != nil {
		s.bad, _ = inserted(s.bad, one)
	}
	a := s.amount(one)
	if at > 0 {
		a = a.Plus(s.upTo[at-1])
	}
	s.upTo = append(s.upTo[:at], a)
	for _, later := range match[at+1:] {
		a = a.Plus(s.amount(later))
		s.upTo = append(s.upTo, a)
	}
}

// makeRoom removes elements until one more fits.
func makeRoom[K comparable, V any](from map[K]V, most int) {
	for old := range from {
		if len(from) < most {
			break
		}
		delete(from, old)
	}
}

// index returns the index of the pattern of a query. The caller holds the lock.
func (p *pastCalls) index(q history.Query) (*pastIndex, error) {
	key := history.Query{Tool: q.Tool, Effect: q.Effect, Resource: q.Resource, Outcome: q.Outcome}
	if x := p.indexes[key]; x != nil {
		return x, nil
	}
	pattern, err := pastcall.Parse(q)
	if err != nil {
		return nil, err
	}
	x := &pastIndex{pattern: pattern}
	candidates := p.ordered
	switch name, place := pattern.Exact(); {
	case place != "": // a pattern with the resource of each call is new for each call
		candidates = p.places[place]
		for _, one := range p.places[""] {
			x.add(one)
		}
	case name != "":
		candidates = p.tools[name]
	}
	for _, one := range candidates {
		x.add(one)
	}
	if p.indexes == nil {
		p.indexes = map[history.Query]*pastIndex{}
	}
	makeRoom(p.indexes, maxPastIndexes)
	p.indexes[key] = x
	return x, nil
}

// snapshot returns the calls that were counted so far.
func (p *pastCalls) snapshot() pastSnapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return pastSnapshot{p, len(p.counted)}
}

// pastSnapshot answers from the first n calls that were counted. It implements
// history.Source.
type pastSnapshot struct {
	calls *pastCalls
	n     int
}

// Find implements history.Source.
func (s pastSnapshot) Find(q history.Query) (a history.Answer, err error) {
	w, err := pastcall.ParseWindow(q.Window)
	if err != nil {
		return a, err
	}
	if q.Sum != "" {
		if err := pastcall.CheckPointer(q.Sum); err != nil {
			return a, err
		}
	}
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	x, err := s.calls.index(q)
	if err != nil {
		return a, err
	}
	in := s.window(w, q.Now)
	if s.part(x.unknown, in).count() > 0 {
		return a, pastcall.ErrErased
	}
	part := s.part(x.match, in)
	if q.Sum != "" {
		if a.Sum, err = s.sum(x, q.Sum, part, in); err != nil {
			return a, err
		}
	}
	if a.Count = part.count(); a.Count > 0 {
		a.Last = s.place(part.last())
	}
	return a, nil
}

// sum returns the sum of an argument of the calls in a part.
func (s pastSnapshot) sum(x *pastIndex, argument string, of pastPart, in func(*pastCall) bool) (json.Number, error) {
	sums := x.sum(argument)
	if bad := s.part(sums.bad, in); bad.count() > 0 {
		_, err := pastcall.Amount(bad.last().seen.Args, argument)
		return "", err
	}
	if len(of.calls) == 0 {
		return "0", nil
	}
	total := sums.upTo[len(sums.upTo)-1]
	if of.begin > 0 {
		total = total.Minus(sums.upTo[of.begin-1])
	}
	for _, late := range of.late {
		total = total.Minus(sums.amount(late))
	}
	return json.Number(total.String()), nil
}

// window returns a function that reports whether a call is in the window, which
// is the end of each list.
func (s pastSnapshot) window(w pastcall.Window, now time.Time) func(*pastCall) bool {
	if w.Span > 0 {
		begin := now.Add(-w.Span)
		return func(c *pastCall) bool { return c.at.After(begin) }
	}
	if w.Last == 0 || w.Last >= s.n {
		return func(*pastCall) bool { return true }
	}
	begin := len(s.calls.ordered) - w.Last
	var late []int
	for _, c := range s.calls.counted[s.n:] {
		at, _ := position(s.calls.ordered, c)
		late = append(late, at)
	}
	slices.Sort(late)
	for _, at := range slices.Backward(late) {
		if at >= begin {
			begin--
		}
	}
	first := s.calls.ordered[begin]
	return func(c *pastCall) bool { return c == first || order(c.endedCall, first.endedCall) > 0 }
}

// pastPart is a part of a list: the end of it, without the calls that ended
// after the snapshot. These are few: they ended while a call was decided.
type pastPart struct {
	begin int // in the list
	calls []*pastCall
	late  []*pastCall // of calls
}

func (s pastSnapshot) part(list []*pastCall, in func(*pastCall) bool) pastPart {
	begin := sort.Search(len(list), func(i int) bool { return in(list[i]) })
	p := pastPart{begin: begin, calls: list[begin:]}
	for _, c := range s.calls.counted[s.n:] {
		if _, is := position(p.calls, c); is {
			p.late = append(p.late, c)
		}
	}
	return p
}

func (p pastPart) count() int { return len(p.calls) - len(p.late) }

// last returns the last call. The part must have one.
func (p pastPart) last() *pastCall {
	at := len(p.calls) - 1
	for slices.Contains(p.late, p.calls[at]) {
		at--
	}
	return p.calls[at]
}

// place returns the place of a call among all calls of the snapshot, from 1.
func (s pastSnapshot) place(c *pastCall) int {
	at, _ := position(s.calls.ordered, c)
	n := at + 1
	for _, late := range s.calls.counted[s.n:] {
		if order(late.endedCall, c.endedCall) < 0 {
			n--
		}
	}
	return n
}

// position returns where a call is in a list in order, and whether it is there.
func position(list []*pastCall, c *pastCall) (at int, is bool) {
	at, is = slices.BinarySearchFunc(list, c, func(a, b *pastCall) int {
		if a == b {
			return 0
		}
		return order(a.endedCall, b.endedCall)
	})
	return at, is && list[at] == c
}
