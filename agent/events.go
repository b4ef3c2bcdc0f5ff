package agent

import (
	"slices"

	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// events numbers what changes the counts of a session in this process: the
// beginning of each call and its end. Each decision puts the ends before it on
// the journal, so that a reader can compute the counts that it saw.
type events struct {
	last       int
	from       int64               // position up to which the counts were read from the journal
	unrecorded []record.EndedCall  // never changed in place
	tools      map[string]bool     // declarations that the journal has the facts of, by digest
	counters   map[string][]string // declared counters that are not on the journal yet, by tool
}

// next returns the next number. A nil events, of counts that no decision reads,
// numbers nothing.
func (e *events) next() int {
	if e == nil {
		return 0
	}
	e.last++
	return e.last
}

// order returns the place of a call that begins.
func (e *events) order(c *reservedCall) *record.Order {
	if e == nil {
		return nil
	}
	return &record.Order{Number: c.number, Before: c.before, From: e.from, Ended: e.unrecorded[:len(e.unrecorded):len(e.unrecorded)], Counts: c.counts, Counters: e.counters}
}

// ended numbers the end of a call, before its counts change.
func (e *events) ended(call string, c *reservedCall) {
	if e == nil {
		return
	}
	end := record.EndedCall{Number: e.next(), Call: call}
	switch {
	case c.status == "":
		end.Status = string(tool.StatusPending)
	case c.status != tool.StatusDone:
		end.Status = string(c.status)
	}
	if !c.recorded {
		at := c.at
		end.Began, end.Tool, end.Counts, end.At = c.number, c.tool, c.counts, &at
	}
	e.unrecorded = append(e.unrecorded, end)
}

// declare sets the counters that the tools declare.
func (e *events) declare(counters map[string][]string) {
	if e != nil {
		e.counters = counters
	}
}

// knows reports whether the journal has the facts of a declaration.
func (e *events) knows(digest string) bool { return e == nil || e.tools[digest] }

// note notes what a record of a decision has, so that no later one repeats it.
func (e *events) note(c *reservedCall, body record.Body) {
	order, digest := placed(body)
	if e == nil || order == nil {
		return
	}
	if c != nil {
		c.recorded = true
	}
	if order.Tool != nil {
		if e.tools == nil {
			e.tools = map[string]bool{}
		}
		e.tools[digest] = true
	}
	if order.Counters != nil {
		e.counters = nil
	}
	if len(order.Ended) > 0 {
		known := order.Ended
		var rest []record.EndedCall // in a list of its own: orders share the last one
		for _, end := range e.unrecorded {
			at, is := slices.BinarySearchFunc(known, end, func(a, b record.EndedCall) int { return a.Number - b.Number })
			if !is || known[at].Call != end.Call {
				rest = append(rest, end)
			}
		}
		e.unrecorded = rest
	}
}

// placed returns the place that a record of a decision has, and the digest of
// the tool's declaration.
func placed(body record.Body) (order *record.Order, digest string) {
	switch b := body.(type) {
	case *record.Started:
		return b.Order, b.Tool.Digest
	case *record.Held:
		return b.Order, b.Tool.Digest
	case *record.Denied:
		return b.Order, b.Tool.Digest
	case *record.Asked:
		return b.Order, b.Tool.Digest
	default:
		return nil, ""
	}
}
