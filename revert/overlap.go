package revert

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Dependencies determine the order: reverts begin with the newest call, and
// redos with the oldest. Versions alone do not suffice. A call's pre-image can
// be present because of a call above it, and its post-image because a call
// below it is gone.

// modeFor lists by resource the remaining changes of later calls on the changes of a
// call, for revertMode.kept. They are reverted first, also if the interrupted
// process that had reached this call knew that one of them could not be.
func (r *Reverter) modeFor(ctx context.Context, t *Txn, c *Call) (revertMode, error) {
	m, calls := revertMode{kept: map[string]string{}, gone: map[string]string{}}, t.Calls
	others := scope{upon: map[string][]dependentNote{}}
	if t.End != "" { // until then no other transaction changed what it had claimed
		var err error
		if others, err = r.othersOn(ctx, t, []*Call{c}, false, newSeenChanges()); err != nil {
			return m, err
		}
		others.upon, calls = map[string][]dependentNote{}, slices.Concat(calls, others.calls)
	}
	over := dependenciesOf(calls)
	for _, later := range calls {
		if !over[later][c] || !later.HasEffects() {
			continue
		}
		if other := others.txns[later.Ref.Txn]; other != nil && len(other.Named) > 0 {
			others.addStaying(later, other)
			continue
		}
		for _, ch := range later.remaining() {
			m.keep(later, []effect.Result{{Resource: ch.Resource}})
		}
	}
	m.upon = others.upon
	return m, nil
}

// dependentsOn lists by resource the remaining changes of other calls of the
// transaction on the changes of some calls, for revertMode.upon.
func (t *Txn) dependentsOn(some []*Call) map[string][]dependentNote {
	left, on := t.EffectiveCalls(), map[string][]dependentNote{}
	over := dependenciesOf(left)
	for _, later := range left {
		if slices.Contains(some, later) || !slices.ContainsFunc(some, func(c *Call) bool { return over[later][c] }) {
			continue
		}
		for _, ch := range later.remaining() {
			on[ch.Resource] = []dependentNote{{why: "call " + later.Ref.Call + ", which is not part of this revert, changed it later; revert that call first"}}
		}
	}
	return on
}

// neighborCalls are calls beside those to be redone: recorded, reverted or
// redone after the first change of those.
type neighborCalls []neighborCall

// neighborCall is one neighbor call.
type neighborCall struct {
	*Call
	away bool // it ran in another folder
}

func (a *neighborCalls) add(c *Call, t *Txn) { *a = append(*a, neighborCall{c, len(t.Named) > 0}) }

// neighbors finds the neighbor calls among the calls of the same namespace.
func (r *Reverter) neighbors(ctx context.Context, t *Txn, calls []*Call) (out neighborCalls, err error) {
	first := firstChange(calls)
	if first == 0 {
		return out, nil
	}
	others, err := r.othersOn(ctx, t, calls, false, newSeenChanges())
	if err != nil {
		return out, err
	}
	for _, c := range others.calls {
		out.add(c, others.txns[c.Ref.Txn])
	}
	others.txns[t.ID] = t
	seen, same := map[record.CallRef]bool{}, sameNamespace{r: r, as: t.Session, namespaces: map[string]string{}}
	for e, err := range r.Journal.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindReverting}, After: first}) {
		if err != nil {
			return out, err
		}
		if e.Erased != "" {
			continue // nothing of it can be redone
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return out, err
		}
		b, ok := rec.Body.(*record.Reverting)
		if !ok || seen[b.Of] {
			continue
		}
		of := b.Of
		seen[of] = true
		if others.txns[of.Txn] == nil {
			if others.txns[of.Txn], err = r.Load(ctx, of.Txn); err != nil {
				return out, err
			}
		}
		c, there := others.txns[of.Txn].Call(of.Call)
		if there {
			there, err = same.has(ctx, c.Session)
		}
		if err != nil {
			return out, err
		}
		if there {
			out.add(c, others.txns[of.Txn])
		}
	}
	return out, nil
}

// obstaclesTo lists by resource, in words, why a call cannot be redone there, for
// revertMode.upon. Either a change that the call depended on is not present, or
// one is present that it did not depend on. The calls in come are redone in
// their order. A later call that ran in another folder is present only if it
// was redone here. The call to redo was reverted here without it.
func (a neighborCalls) obstaclesTo(c *Call, come map[record.CallRef]bool) map[string][]dependentNote {
	why := map[string][]dependentNote{}
	for _, o := range a {
		if o.Ref == c.Ref || come[o.Ref] {
			continue
		}
		for i, ch := range c.Changes {
			was, is := o.effectPresentAt(ch.Resource, c.at[i]), o.mayRemain(ch.Resource)
			if back, _ := o.lastCompletion(ch.Resource, math.MaxInt64); !was && o.away {
				is = is && back
			}
			switch {
			case was && !is:
				why[ch.Resource] = one("call %s of transaction %s changed it earlier and is reverted; redo that call first", o.Ref.Call, o.Ref.Txn)
			case is && !was:
				why[ch.Resource] = one("call %s of transaction %s changed it later or was redone later; revert that call first", o.Ref.Call, o.Ref.Txn)
			}
		}
	}
	return why
}

// effectPresentAt reports whether the effect of the call on a resource was present at a
// position of the journal.
func (c *Call) effectPresentAt(resource string, pos int64) (is bool) {
	for i, ch := range c.Changes {
		is = is || ch.Resource == resource && c.at[i] < pos
	}
	if back, acted := c.lastCompletion(resource, pos); acted {
		is = back
	}
	return is
}

// lastCompletion reports whether an attempt in these folders completed a resource before
// a position of the journal, and whether the newest of them redid it.
func (c *Call) lastCompletion(resource string, pos int64) (back, lastCompletion bool) {
	for _, u := range c.tries {
		if !u.away && u.at < pos && u.cleared(resource) {
			back, lastCompletion = u.Reverting.Cause == causeRedo, true
		}
	}
	return back, lastCompletion
}

func one(words string, of ...any) []dependentNote {
	return []dependentNote{{why: fmt.Sprintf(words, of...)}}
}

// mayRemain reports whether an effect of the call on a resource may remain.
func (c *Call) mayRemain(resource string) bool {
	return c.HasEffects() && slices.ContainsFunc(c.remaining(), func(ch effect.Change) bool { return ch.Resource == resource })
}

// cleared reports whether an attempt completed a resource.
func (u *Reversal) cleared(resource string) bool {
	return u.Reverted != nil && slices.ContainsFunc(u.Reverted.Results, func(r effect.Result) bool {
		return r.Resource == resource && r.Outcome.Clean()
	})
}

// firstChange returns the position of the first change of calls, or 0 if there
// is none.
func firstChange(calls []*Call) (first int64) {
	for _, c := range calls {
		if len(c.at) > 0 && (first == 0 || c.at[0] < first) {
			first = c.at[0]
		}
	}
	return first
}
