package agent

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/pastcall"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// recentCalls bounds the number of recent calls that policies see.
const recentCalls = 32

// treeDegree is small because each call copies a path of the tree.
const treeDegree = 8

// sessionCounters counts the calls of a session. It is a fold of the session's
// records: of those that its own calls write, or of those on the journal. Both
// give the same counts.
type sessionCounters struct {
	now      func() time.Time
	registry func() *tool.Registry

	mu       sync.Mutex                        // never held across a wait
	changes  int                               // how often calls and labels changed them
	tools    *btree.Map[string, *toolCounters] // copied on write, shared with the facts of calls
	calls    map[string]*reservedCall          // by call ID: in flight, or without a final status
	recent   []endedCall
	shown    []perm.RecentCall // recent, as policies see it; facts share it, so its elements never change
	labels   []string          // sorted
	requires []string          // requirements of each call, raised by results; sorted

	past *pastCalls // every ended call, for the helpers of policies

	declared *tool.Registry // registry whose counters are already in the tools
	events   *events        // nil: no decision reads the counts
}

// reservedCall is a call that is not yet added to the counts.
type reservedCall struct {
	tool     string
	sums     map[string]canon.Amount
	flying   bool // in flight in this process
	queued   bool // held until the commit: the call counts as in flight until then
	reserved bool // its sums are reserved
	start    time.Time
	status   tool.Status // empty: the call has not ended
	tried    tool.Status // for a queued call: status of a release without effect
	at       time.Time   // time of tried
	spent    bool        // the counters keep its sums, regardless of its status

	number   int                    // of its beginning among the events; 0: it was not reserved in this process
	before   []int                  // earlier numbers
	counts   map[string]json.Number // sums as the call gave them
	recorded bool                   // the journal has a decision about it

	class     string          // effect class; empty: no record of the call says it
	resources []string        // of the accesses that the policy decided; nil: as class
	args      json.RawMessage // shape of the recorded arguments; nil: as class
}

// endedCall is a call that has ended.
type endedCall struct {
	at     time.Time
	call   string
	tool   string
	status tool.Status
}

// order compares by time, then by ID. Readers of the records use the same
// order.
func order(a, b endedCall) int {
	if c := a.at.Compare(b.at); c != 0 {
		return c
	}
	if a.call < b.call {
		return -1
	}
	return 1
}

// newSessionCounters returns empty counters that follow the tools of registry.
func newSessionCounters(now func() time.Time, registry func() *tool.Registry) *sessionCounters {
	return &sessionCounters{now: now, registry: registry, tools: btree.NewMap[string, *toolCounters](treeDegree), calls: map[string]*reservedCall{}, shown: []perm.RecentCall{}, past: &pastCalls{}}
}

// idle reports whether no call is in flight. n numbers this state of the counts.
func (t *sessionCounters) idle() (n int, idle bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		if c.flying {
			return t.changes, false
		}
	}
	return t.changes, true
}

// replace makes the counts those of fresh, which nothing else uses, unless they
// changed since idle returned n.
func (t *sessionCounters) replace(fresh *sessionCounters, n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changes != n {
		return false
	}
	t.tools, t.calls, t.recent, t.shown = fresh.tools, fresh.calls, fresh.recent, fresh.shown
	t.labels, t.requires, t.past, t.events, t.declared = fresh.labels, fresh.requires, fresh.past, fresh.events, fresh.declared
	return true
}

// declare adds the counters that tools declare, so that a policy finds a zero
// if nothing was counted. The caller holds the lock.
func (t *sessionCounters) declare() {
	now := t.registry()
	if now == t.declared {
		return
	}
	t.declared = now
	var declared map[string][]string
	for _, tl := range now.All() {
		if counters := tl.Spec().Counters; len(counters) > 0 {
			if declared == nil {
				declared = map[string][]string{}
			}
			declared[tl.Name()] = slices.Sorted(maps.Keys(counters))
		}
	}
	t.declareCounters(declared)
	t.events.declare(declared)
}

// declareCounters adds declared counters, by tool. The caller holds the lock.
func (t *sessionCounters) declareCounters(counters map[string][]string) {
	for name, all := range counters {
		t.change(name, func(c *toolCount) {
			c.declared = true
			c.name(slices.Values(all))
		})
	}
}

// change replaces the counts of a tool by a version that edit has changed. The
// caller holds the lock.
func (t *sessionCounters) change(name string, edit func(*toolCount)) {
	next := &toolCounters{}
	if last, ok := t.tools.Get(name); ok {
		next.toolCount = last.toolCount
	}
	edit(&next.toolCount)
	t.tools.Set(name, next)
}

// name adds sums of zero, and the tool if it is not known. The caller holds the
// lock.
func (t *sessionCounters) name(tool string, sums map[string]canon.Amount) {
	if c, ok := t.tools.Get(tool); ok && c.names(sums) {
		return
	}
	t.change(tool, func(n *toolCount) { n.name(maps.Keys(sums)) })
}

// countersAt holds the counts of a session at a time. It implements
// perm.CountSource.
type countersAt struct {
	tools *btree.Map[string, *toolCounters]
	now   time.Time
}

func (s countersAt) Of(name string) (counts perm.ToolCounts, known bool) {
	c, known := s.tools.Get(name)
	if known {
		counts = c.facts(s.now)
	}
	return counts, known
}

func (s countersAt) All() iter.Seq2[string, perm.ToolCounts] {
	return func(yield func(string, perm.ToolCounts) bool) {
		s.tools.Scan(func(name string, c *toolCounters) bool { return yield(name, c.facts(s.now)) })
	}
}

func (s countersAt) Len() int { return s.tools.Len() }

func (t *sessionCounters) facts(id string) perm.SessionFacts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held(id, t.now())
}

// held returns the session facts for the policy at a time. The caller holds the
// lock.
func (t *sessionCounters) held(id string, now time.Time) perm.SessionFacts {
	t.declare()
	return perm.SessionFacts{
		ID: id, Labels: append([]string{}, t.labels...), Requires: slices.Clone(t.requires),
		Tools: perm.CountsFrom(countersAt{tools: t.tools.Copy(), now: now}), Recent: t.shown[:len(t.shown):len(t.shown)],
		Past: t.past.snapshot(),
	}
}

// reserve counts a call as in flight, adds its sums, and returns the facts
// without the call, in one step.
func (t *sessionCounters) reserve(id, call string, ref record.ToolRef, sums map[string]json.Number) pipeline.Reservation {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	c := t.calls[call]
	if c == nil || !c.queued {
		var numbers []int
		if c != nil { // a filter replaced the input: the new input counts
			t.unreserve(c)
			numbers = append(slices.Clone(c.before), c.number)
		}
		c = &reservedCall{tool: ref.Name, sums: amounts(sums), number: t.events.next(), before: numbers, counts: sums}
	}
	t.name(ref.Name, c.sums)
	t.unreserve(c) // a held call sees the session without itself
	now := t.now()
	before := t.held(id, now)
	t.calls[call], c.flying, c.reserved = c, true, true
	t.change(ref.Name, func(n *toolCount) { n.reserve(c.sums, 1) })
	return pipeline.Reservation{Session: before, Time: now, Order: t.events.order(c), NewTool: !t.events.knows(ref.Digest)}
}

// unreserve removes the reserved sums of a call. The caller holds the lock.
func (t *sessionCounters) unreserve(c *reservedCall) {
	if c.reserved {
		t.change(c.tool, func(n *toolCount) { n.reserve(c.sums, -1) })
		c.reserved = false
	}
}

// release ends the flight of a call and counts it by its status, in one step.
// If the journal did not accept the record, the call counts by the status that
// its caller got.
func (t *sessionCounters) release(call string, s tool.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	c, ok := t.calls[call]
	if !ok {
		return
	}
	c.flying = false
	if s == tool.StatusPending {
		t.events.ended(call, c)
		t.drop(call) // the call has not ended
		return
	}
	if c.queued && (s == tool.StatusHeld || c.status == "") && s != tool.StatusUnknown {
		return // it waits for the commit, or for the next one
	}
	if c.status != s {
		c.spent = c.spent || !c.start.IsZero() || s == tool.StatusUnknown || s == tool.StatusVerifyFailed || s.OK()
		c.status = s
	}
	if c.at.IsZero() {
		c.at = t.now()
	}
	t.commit(call)
}

// records adds the written records of the session's calls to the counts.
func (t *sessionCounters) records(at time.Time, lines []revert.CallRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	for _, l := range lines {
		t.record(l.Call, at, l.Body)
	}
}

// record adds one record to the counts. The caller holds the lock.
func (t *sessionCounters) record(call string, at time.Time, body record.Body) {
	c := t.calls[call]
	t.events.note(c, body)
	switch b := body.(type) {
	case *record.Labelled:
		add(&t.labels, b.Labels)
		add(&t.requires, b.Requires)
	case *record.Held:
		t.queue(call, b)
		return
	case *record.Dropped:
		t.unqueue(call)
		return
	case *record.Started:
		if c == nil {
			c = &reservedCall{tool: b.Tool.Name, sums: amounts(b.Counts)}
			t.calls[call] = c
		}
		c.start = at
		c.describe(b.Class, b.Access, b.Input)
	case *record.Invalid: // a tool name that a model invented is not counted
		t.refused(call, b.Tool, tool.StatusInvalid, at, nil)
	case *record.Denied:
		t.refused(call, b.Tool, tool.Status(b.Status()), at, func(c *reservedCall) {
			c.describe(b.Class, append([]record.Access{b.Access}, b.Others...), b.Input)
		})
	case *record.Done:
		c.end(tool.StatusDone, at, true)
	case *record.Failed:
		if c != nil && c.queued {
			c.requeue(tool.Status(b.Status), at, b.Spent())
			return
		}
		c.end(tool.Status(b.Status), at, b.Spent())
	case *record.Unknown:
		c.end(tool.StatusUnknown, at, true)
	case *record.Erased:
		switch s := tool.Status(b.Status); s {
		case "": // a revert, or a call that never ended
			return
		case tool.StatusInvalid, tool.StatusDenied:
			t.refused(call, b.Tool, s, b.Ended, nil)
			return
		default:
			c = &reservedCall{tool: b.Tool.Name, sums: amounts(b.Counts), class: string(b.Class)}
			t.calls[call] = c
			c.end(s, b.Ended, b.Spent)
		}
	case *record.Verified:
		if c != nil && !b.OK && b.Phase != string(verify.AfterRevert) && c.status == tool.StatusDone {
			c.status = tool.StatusVerifyFailed
		}
	default:
		return
	}
	// Verification can still change a result. Every other status is final.
	if _, result := body.(*record.Done); c != nil && !c.flying && c.status != "" && !result {
		t.commit(call)
	}
}

// describe notes what the record of a decision says about a call.
func (c *reservedCall) describe(class effect.Class, accesses []record.Access, input json.RawMessage) {
	c.args = pastcall.Shape(input)
	c.class, c.resources = string(class.OrPivot()), make([]string, 0, len(accesses))
	for _, a := range accesses {
		if a.Resource != "" && !slices.Contains(c.resources, a.Resource) {
			c.resources = append(c.resources, a.Resource)
		}
	}
}

func (c *reservedCall) end(s tool.Status, at time.Time, spent bool) {
	if c != nil { // otherwise it was counted before, as unknown
		c.status, c.at, c.spent = s, at, spent
	}
}

// refused counts a call whose code did not run.
// describe adds what its record says; nil: nothing.
func (t *sessionCounters) refused(call string, ref record.ToolRef, s tool.Status, at time.Time, describe func(*reservedCall)) {
	if ref.Digest == "" {
		return
	}
	c, ok := t.calls[call]
	if !ok {
		c = &reservedCall{tool: ref.Name}
		t.calls[call] = c
	}
	if describe != nil {
		describe(c)
	}
	c.end(s, at, false)
	if !c.flying {
		t.commit(call)
	}
}

// settle ends the reading of a journal. Calls without an end there count as
// unknown.
func (t *sessionCounters) settle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(t.calls)) {
		c := t.calls[id]
		if c.flying || (c.queued && c.status == "" && c.start.IsZero()) {
			continue
		}
		if c.status == "" {
			c.end(tool.StatusUnknown, c.start, true)
		}
		t.commit(id)
	}
}

// commit adds an ended call to the counts. The caller holds the lock.
func (t *sessionCounters) commit(call string) {
	c := t.calls[call]
	h := endedCall{at: c.at, call: call, tool: c.tool, status: c.status}
	now := t.now()
	t.change(c.tool, func(n *toolCount) {
		if c.reserved {
			n.reserve(c.sums, -1)
			c.reserved = false
		}
		n.add(h, c, now)
	})
	t.events.ended(call, c)
	t.drop(call)
	t.show(h)
	t.past.add(h, c)
}

// show adds an ended call to the recent ones. Usually it is the newest: then it
// comes after the elements that earlier facts refer to. The caller holds the
// lock.
func (t *sessionCounters) show(h endedCall) {
	shown := perm.RecentCall{Tool: h.tool, Status: string(h.status)}
	at, _ := slices.BinarySearchFunc(t.recent, h, order)
	if at < len(t.recent) {
		t.shown = slices.Clone(t.shown)
	}
	t.recent, t.shown = slices.Insert(t.recent, at, h), slices.Insert(t.shown, at, shown)
	if extra := len(t.recent) - recentCalls; extra > 0 {
		t.recent, t.shown = t.recent[extra:], t.shown[extra:]
	}
}

// counting reports whether a call is in flight or waits.
func (t *sessionCounters) counting(call string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[call] != nil
}

// drop removes a call, and its tool if nothing else is known about that.
func (t *sessionCounters) drop(call string) {
	t.unreserve(t.calls[call])
	name := t.calls[call].tool
	delete(t.calls, call)
	if c, ok := t.tools.Get(name); ok && c.empty() {
		t.tools.Delete(name)
	}
}

// label adds labels and requirements, and returns the new ones. Nothing removes
// them.
func (t *sessionCounters) label(labels, requires []string) (freshLabels, freshRequires []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	return add(&t.labels, labels), add(&t.requires, requires)
}

// add inserts new elements into a sorted list, without changing the array that
// others can still read.
func add(list *[]string, more []string) (fresh []string) {
	for _, one := range more {
		if at, has := slices.BinarySearch(*list, one); !has {
			*list = slices.Insert(slices.Clone(*list), at, one)
			fresh = append(fresh, one)
		}
	}
	return fresh
}

// amounts parses sums that were checked when the call was admitted. A value
// that is not a number counts as zero.
func amounts(sums map[string]json.Number) map[string]canon.Amount {
	if len(sums) == 0 {
		return nil
	}
	out := make(map[string]canon.Amount, len(sums))
	for name, n := range sums {
		a, _ := canon.ParseAmount(string(n))
		out[name] = a
	}
	return out
}

// raised returns the labels of the session, and the requirements of each of its
// calls.
func (t *sessionCounters) raised() (labels, requires []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.labels...), slices.Clone(t.requires)
}

// txnFacts holds the facts of one transaction. It implements pipeline.CounterStore.
type txnFacts struct {
	session *Session
	txn     string
	up      *txnFacts // facts of the enclosing transaction; nil: none

	mu     sync.Mutex // never held across a wait
	seq    int
	ledger *callLedger // of the transaction; nil: no budget needs it
}

// Session returns the session's facts for a policy.
func (c *txnFacts) Session() perm.SessionFacts { return c.session.state.counters.facts(c.session.id) }

// Labels returns the session's labels, and the requirements of each of its
// calls.
func (c *txnFacts) Labels() (labels, requires []string) {
	return c.session.state.counters.raised()
}

// Txn returns the transaction's facts for a policy.
func (c *txnFacts) Txn() perm.TxnFacts {
	if c.up != nil {
		f := c.up.Txn()
		f.Depth++
		return f
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return perm.TxnFacts{ID: c.txn, Calls: c.seq}
}

// Next reserves a sequence number.
func (c *txnFacts) Next() int {
	if c.up != nil {
		return c.up.Next()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	return c.seq
}

// Label adds labels and requirements to the session.
func (c *txnFacts) Label(labels, requires []string) (freshLabels, freshRequires []string) {
	return c.session.state.counters.label(labels, requires)
}

// Reserve counts a call as in flight, and returns the session's facts without it.
func (c *txnFacts) Reserve(call string, ref record.ToolRef, sums map[string]json.Number) pipeline.Reservation {
	return c.session.state.counters.reserve(c.session.id, call, ref, sums)
}

// Release ends the reservation that Reserve began.
func (c *txnFacts) Release(call string, s tool.Status) { c.session.state.counters.release(call, s) }
