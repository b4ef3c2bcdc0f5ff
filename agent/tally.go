package agent

import (
	"maps"
	"slices"
	"sync"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// recentCalls is how many calls policies can look back on.
const recentCalls = 32

// tally is what a session has done so far.
type tally struct {
	mu     sync.Mutex // never held across a wait
	tools  map[string]perm.ToolTally
	recent []perm.RecentCall
	labels []string // sorted
}

func newTally() *tally { return &tally{tools: map[string]perm.ToolTally{}} }

func (t *tally) facts(id string) perm.SessionFacts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held(id)
}

// held is called with the lock.
func (t *tally) held(id string) perm.SessionFacts {
	recent := slices.Clone(t.recent)
	if recent == nil {
		recent = []perm.RecentCall{}
	}
	return perm.SessionFacts{ID: id, Labels: append([]string{}, t.labels...), Tools: maps.Clone(t.tools), Recent: recent}
}

// reserve counts a call as in flight, and returns the facts as they were before
// it, in one step.
func (t *tally) reserve(id, name string) perm.SessionFacts {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.held(id)
	t.fly(name, 1)
	return before
}

func (t *tally) release(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fly(name, -1)
}

// fly is called with the lock.
func (t *tally) fly(name string, n int) {
	c := t.tools[name]
	c.InFlight += n
	t.tools[name] = c
}

// label adds labels, which are never taken away, and returns the new ones.
func (t *tally) label(labels []string) (fresh []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range labels {
		if at, has := slices.BinarySearch(t.labels, l); !has {
			t.labels = slices.Insert(slices.Clone(t.labels), at, l)
			fresh = append(fresh, l)
		}
	}
	return fresh
}

func (t *tally) ended(name string, s tool.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.tools[name]
	switch s {
	case tool.StatusDone, tool.StatusHeld:
		c.Run++
	case tool.StatusDenied:
		c.Denied++
	case tool.StatusInvalid, tool.StatusPending: // nothing ran
	case tool.StatusFailed, tool.StatusVerifyFailed, tool.StatusCancelled, tool.StatusTimeout, tool.StatusUnknown:
		c.Failed++
	}
	t.tools[name] = c
	t.recent = append(t.recent, perm.RecentCall{Tool: name, Status: string(s)})
	if len(t.recent) > recentCalls {
		t.recent = slices.Clone(t.recent[len(t.recent)-recentCalls:])
	}
}

// counts are the facts of one transaction. It makes a tool.Facts.
type counts struct {
	session *Session
	txn     string

	mu  sync.Mutex // never held across a wait
	seq int
}

// Session returns the session's facts for a policy.
func (c *counts) Session() perm.SessionFacts { return c.session.tally.facts(c.session.id) }

// Txn returns the transaction's facts for a policy.
func (c *counts) Txn() perm.TxnFacts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return perm.TxnFacts{ID: c.txn, Calls: c.seq}
}

// Next reserves a sequence number.
func (c *counts) Next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	return c.seq
}

// Ended counts a call.
func (c *counts) Ended(name string, s tool.Status) { c.session.tally.ended(name, s) }

// Label gives the session labels.
func (c *counts) Label(labels []string) []string { return c.session.tally.label(labels) }

// Reserve counts a call as in flight, and returns the session's facts without it.
func (c *counts) Reserve(name string) perm.SessionFacts {
	return c.session.tally.reserve(c.session.id, name)
}

// Release ends what Reserve began.
func (c *counts) Release(name string) { c.session.tally.release(name) }
