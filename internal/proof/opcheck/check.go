package opcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Check returns the promises that a history violates, in no particular order.
func Check(events []Event) []Violation {
	c := checker{events: events}
	c.foreign()
	c.operations()
	c.circles()
	c.checkReverted()
	c.done()
	c.owners()
	c.prefixes()
	return c.found
}

type checker struct {
	events []Event
	found  []Violation
}

func (c *checker) add(promise, format string, args ...any) {
	c.found = append(c.found, Violation{promise, fmt.Sprintf(format, args...)})
}

// foreign checks that the content of an outside actor is kept at the end,
// unless that actor dropped it.
func (c *checker) foreign() {
	kept := map[string]bool{}
	for _, e := range c.events {
		if e.Kind == Kept || e.Kind == Dropped {
			kept[e.Content] = true
		}
	}
	for _, e := range c.events {
		if e.Kind == Theirs && e.Content != "" && !kept[e.Content] {
			c.add(ForeignBytes, "%q, which somebody else left at %s, is nowhere", e.Content, e.Resource)
		}
	}
}

// operations checks that each operation is announced before its effect, and has
// it once.
func (c *checker) operations() {
	announced, acted, withdrawn := map[string]bool{}, map[string]int{}, map[string]int{}
	for _, e := range c.events {
		switch e.Kind {
		case Announced:
			announced[e.Key] = true
		case Acted:
			if acted[e.Key]++; acted[e.Key] == 2 {
				c.add(Once, "operation %s had its effect twice", e.Key)
			}
			if !announced[e.Key] {
				c.add(Announcing, "operation %s had an effect, and no record announced it", e.Key)
			}
		case Withdrawn:
			if withdrawn[e.Key]++; withdrawn[e.Key] > acted[e.Key] {
				c.add(Once, "operation %s was reverted %d times, and had its effect %d times", e.Key, withdrawn[e.Key], acted[e.Key])
			}
		default:
		}
	}
}

// circles checks that dependencies have no cycle: of two transactions on one
// resource, the later one depends on the earlier one.
func (c *checker) circles() {
	ended := map[string]bool{}
	for _, e := range c.events {
		if e.Kind == Ended {
			ended[e.Txn] = true
		}
	}
	last, on := map[string]string{}, map[string]map[string]bool{}
	for _, e := range c.events {
		if e.Kind != Touched || !ended[e.Txn] {
			continue
		}
		if before := last[e.Resource]; before != "" && before != e.Txn {
			if on[e.Txn] == nil {
				on[e.Txn] = map[string]bool{}
			}
			on[e.Txn][before] = true
		}
		last[e.Resource] = e.Txn
	}
	if circle := circleIn(on); circle != nil {
		c.add(Acyclic, "each of these stands on the one after it: %s", strings.Join(circle, ", "))
	}
}

// circleIn finds a cycle in a graph of dependencies.
func circleIn(on map[string]map[string]bool) []string {
	const onTheWay, over = 1, 2
	at := map[string]int{}
	var way []string
	var walk func(string) []string
	walk = func(txn string) []string {
		at[txn] = onTheWay
		way = append(way, txn)
		for _, next := range slices.Sorted(maps.Keys(on[txn])) {
			if at[next] == onTheWay {
				return append(slices.Clone(way[slices.Index(way, next):]), next)
			}
			if at[next] == 0 {
				if found := walk(next); found != nil {
					return found
				}
			}
		}
		at[txn], way = over, way[:len(way)-1]
		return nil
	}
	for _, txn := range slices.Sorted(maps.Keys(on)) {
		if at[txn] == 0 {
			if found := walk(txn); found != nil {
				return found
			}
		}
	}
	return nil
}

// effect is an effect of a call on one resource, or in a service under a key.
type effect struct{ txn, call, resource, content, key string }

// checkReverted checks that reverted effects are absent until they are redone.
func (c *checker) checkReverted() {
	var effects []effect
	calls, acted := map[string]string{}, map[string]int{} // call by key
	gone := map[int]bool{}                                // by index in effects
	say := func(which func(effect) bool, is bool) {
		for i, e := range effects {
			if which(e) {
				gone[i] = is
			}
		}
	}
	for _, e := range c.events {
		switch e.Kind {
		case Announced:
			calls[e.Key] = e.Call
			effects = append(effects, effect{txn: e.Txn, call: e.Call, key: e.Key})
		case Left:
			effects = append(effects, effect{txn: e.Txn, call: e.Call, resource: e.Resource, content: e.Content})
		case EffectReverted:
			say(func(f effect) bool { return f.call == e.Call && (e.Resource == "" || f.resource == e.Resource) }, true)
		case Ended:
			if e.State == Reverted {
				say(func(f effect) bool { return f.txn == e.Txn }, true)
			}
		case RedoStarted:
			say(func(f effect) bool { return f.txn == e.Txn }, false)
		case Acted:
			acted[e.Key]++
		case Withdrawn:
			acted[e.Key]--
		case Seen:
			for i, f := range effects {
				if gone[i] && f.key == "" && f.content != "" && f.content == e.Content && f.resource == e.Resource {
					c.add(ClaimReverted, "call %s was said to be reverted at %s, and %q is there", f.call, f.resource, f.content)
				}
			}
		default:
		}
	}
	for i, f := range effects {
		if gone[i] && f.key != "" && acted[f.key] > 0 {
			c.add(ClaimReverted, "call %s was said to be reverted, and its effect under %s is there", calls[f.key], f.key)
		}
	}
}

// done checks that the effect of a committed call is present, unless another
// actor changed the resource later or the call was reverted. A change between
// the announcement and the report of a call may have come later.
func (c *checker) done() {
	said, committed, taken := map[string]bool{}, map[string]bool{}, map[string]bool{}
	last, seen := map[string]effect{}, map[string]string{}
	foreign, touched, left := map[string]int{}, map[[2]string]int{}, map[string]int{} // indexes of the newest
	for i, e := range c.events {
		switch e.Kind {
		case Touched:
			touched[[2]string{e.Txn, e.Resource}] = i
		case Done:
			said[e.Call] = true
		case Ended:
			committed[e.Txn] = e.State == Committed
		case EffectReverted, RedoStarted, Taking: // whether the caller knew it, or died, or recovery continued it
			taken[e.Txn] = true
		case Theirs:
			foreign[e.Resource] = i
			delete(last, e.Resource)
		case Left:
			last[e.Resource], left[e.Resource] = effect{txn: e.Txn, call: e.Call, resource: e.Resource, content: e.Content}, i
			if foreign[e.Resource] > touched[[2]string{e.Txn, e.Resource}] {
				delete(last, e.Resource)
			}
		case EffectUnknown: // its changes after an outside actor's content may have come later
			for at, place := range touched {
				if at[0] == e.Txn && place > left[at[1]] {
					delete(last, at[1])
				}
			}
		case Seen:
			seen[e.Resource] = e.Content
		default:
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(last)) {
		f := last[resource]
		is, looked := seen[resource]
		if said[f.call] && committed[f.txn] && !taken[f.txn] && looked && is != f.content {
			c.add(ClaimDone, "call %s left %q at %s and is committed, and %q is there", f.call, f.content, resource, is)
		}
	}
}

// owners checks that only the last owner of a transaction writes to it.
func (c *checker) owners() {
	owner := map[string]string{}
	for _, e := range c.events {
		switch e.Kind {
		case Took:
			owner[e.Txn] = e.Owner
		case Wrote:
			if owner[e.Txn] != e.Owner {
				c.add(Owners, "%s wrote to transaction %s, which is owned by %q", e.Owner, e.Txn, owner[e.Txn])
			}
		default:
		}
	}
}

func (c *checker) prefixes() {
	for _, e := range c.events {
		if e.Kind == Recovered && e.Text != "" {
			c.add(Prefixes, "the first %d records: %s", e.N, e.Text)
		}
	}
}
