package agent

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// windows are the time spans that policies see, beside the whole session.
var windows = []struct {
	name string
	span time.Duration
}{{"1m", time.Minute}, {"1h", time.Hour}, {"24h", 24 * time.Hour}}

// keptFor is how long single calls are kept: longer than any window, for a
// clock that is set back.
const keptFor = 48 * time.Hour

// toolCounters is one version of the counts of a tool in a session. It is
// immutable: a change makes another version, so that the facts of a call stay
// what they were when it was counted.
type toolCounters struct {
	toolCount
	built atomic.Pointer[builtCounts] // last result of facts
}

// toolCount counts the calls of one tool in a session. Each call has a snapshot
// of the counts up to it, so a window is a difference of two snapshots.
type toolCount struct {
	declared bool // the tool declares counters
	known    bool // a call of it has ended
	flying   int
	reserved map[string]canon.Amount // sums of the calls in flight; has every name
	before   counterSnapshot         // counts of calls older than keptFor
	marks    []counterSnapshot       // ordered by time; versions share the array, and only the last one appends to it
}

// builtCounts holds the counts as policies see them in a span of time.
type builtCounts struct {
	counts perm.ToolCounts
	from   time.Time
	until  time.Time // exclusive
}

// counterSnapshot holds the counts of the session up to and including one call.
type counterSnapshot struct {
	call                endedCall
	run, denied, failed int
	sums                map[string]canon.Amount // nil: no sum was raised
}

func (c *toolCount) empty() bool {
	return !c.declared && !c.known && c.flying == 0
}

// name adds sums of zero.
func (c *toolCount) name(names iter.Seq[string]) {
	for n := range names {
		if _, ok := c.reserved[n]; !ok {
			c.raise(n, canon.Amount{})
		}
	}
}

// names reports whether each of the sums has a name already.
func (c *toolCount) names(sums map[string]canon.Amount) bool {
	for n := range sums {
		if _, ok := c.reserved[n]; !ok {
			return false
		}
	}
	return true
}

// raise adds to a reserved sum, in a map of its own.
func (c *toolCount) raise(name string, by canon.Amount) {
	if c.reserved = maps.Clone(c.reserved); c.reserved == nil {
		c.reserved = map[string]canon.Amount{}
	}
	c.reserved[name] = c.reserved[name].Plus(by)
}

func (c *toolCount) reserve(sums map[string]canon.Amount, n int) {
	c.flying += n
	for name, a := range sums {
		if n < 0 {
			a = canon.Amount{}.Minus(a)
		}
		c.raise(name, a)
	}
}

// add counts an ended call.
func (c *toolCount) add(h endedCall, from *reservedCall, now time.Time) {
	c.name(maps.Keys(from.sums))
	c.known = true
	at := len(c.marks)
	if at > 0 && order(c.marks[at-1].call, h) > 0 { // otherwise it is the newest, as usual
		at = sort.Search(len(c.marks), func(i int) bool { return order(c.marks[i].call, h) > 0 })
	}
	if at < len(c.marks) {
		c.marks = slices.Clone(c.marks) // older versions read the others
	}
	c.marks = slices.Insert(c.marks, at, counterSnapshot{})
	c.marks[at] = c.last(at).raised(h, from)
	c.marks[at].call = h
	for i := at + 1; i < len(c.marks); i++ {
		c.marks[i] = c.marks[i].raised(h, from)
	}
	kept := now.Add(-keptFor)
	if c.marks[0].call.at.After(kept) {
		return
	}
	old := sort.Search(len(c.marks), func(i int) bool { return c.marks[i].call.at.After(kept) })
	if old > 0 && old > len(c.marks)/2 {
		c.before = c.marks[old-1]
		c.marks = slices.Clone(c.marks[old:])
	}
}

// last returns the snapshot before the one at i.
func (c *toolCount) last(i int) counterSnapshot {
	if i == 0 {
		return c.before
	}
	return c.marks[i-1]
}

// raised returns m with one more call.
func (m counterSnapshot) raised(h endedCall, from *reservedCall) counterSnapshot {
	switch h.status {
	case tool.StatusDone, tool.StatusHeld:
		m.run++
	case tool.StatusDenied:
		m.denied++
	case tool.StatusInvalid, tool.StatusPending: // nothing ran
	case tool.StatusFailed, tool.StatusVerifyFailed, tool.StatusCancelled, tool.StatusTimeout, tool.StatusUnknown:
		m.failed++
	}
	if from.spent && len(from.sums) > 0 {
		m.sums = maps.Clone(m.sums)
		if m.sums == nil {
			m.sums = map[string]canon.Amount{}
		}
		for name, a := range from.sums {
			m.sums[name] = m.sums[name].Plus(a)
		}
	}
	return m
}

// facts returns the counts at a time. Calls in flight are part of every window.
func (c *toolCounters) facts(now time.Time) perm.ToolCounts {
	if b := c.built.Load(); b != nil && !now.Before(b.from) && now.Before(b.until) {
		return b.counts
	}
	end := c.last(len(c.marks))
	b := &builtCounts{from: now, until: now.Add(time.Hour)}
	b.counts = perm.ToolCounts{Counts: c.since(end, counterSnapshot{}), Windows: make(map[string]perm.Counts, len(windows))}
	for _, w := range windows {
		first := sort.Search(len(c.marks), func(i int) bool { return c.marks[i].call.at.After(now.Add(-w.span)) })
		b.counts.Windows[w.name] = c.since(end, c.last(first))
		if first < len(c.marks) {
			if leaves := c.marks[first].call.at.Add(w.span); leaves.Before(b.until) {
				b.until = leaves
			}
		}
	}
	c.built.Store(b)
	return b.counts
}

// since returns the counts after a snapshot, with the calls in flight.
func (c *toolCount) since(end, start counterSnapshot) perm.Counts {
	t := perm.Counts{
		Run: end.run - start.run, Denied: end.denied - start.denied, Failed: end.failed - start.failed, InFlight: c.flying,
	}
	if len(c.reserved) > 0 {
		t.Sums = make(map[string]json.Number, len(c.reserved))
	}
	for name, flying := range c.reserved {
		t.Sums[name] = json.Number(end.sums[name].Minus(start.sums[name]).Plus(flying).String())
	}
	return t
}
