package revert

import "slices"

// The reverted part of a call is the sum over its reverts and redos, resource
// by resource: the last one says nothing about an earlier one.

// Reversals returns the reverts of the call that count, oldest first. A revert that
// a redo applied again completely does not count.
func (c *Call) Reversals() []*Reversal { return c.attempts() }

// RevertSummary returns how much of the call is reverted: all, some or none;
// in_flight while a revert or a redo of it has no end; and "" if no revert of
// it counts.
func (c *Call) RevertSummary() string {
	switch {
	case c.Reversal == nil:
		return ""
	case c.Redo != nil, c.Reversal.Reverted == nil && !c.Reversal.over:
		return "in_flight"
	}
	clean := c.cleared()
	for _, ch := range c.Changes {
		clean[ch.Resource] = clean[ch.Resource] || false
	}
	n := 0
	for _, is := range clean {
		if is {
			n++
		}
	}
	return portion(n, len(clean))
}

// cleared reports for each resource of the attempts whether one of them ended
// well there. Each attempt checks a tool's effects outside handles anew.
func (c *Call) cleared() map[string]bool {
	clean := map[string]bool{}
	for _, u := range c.attempts() {
		if u.Reverted == nil {
			continue
		}
		for _, r := range u.Reverted.Results {
			if r.Resource == c.toolResource() && u != c.Reversal {
				continue
			}
			clean[r.Resource] = clean[r.Resource] || (r.Outcome.Clean() && !u.doubt[r.Resource])
		}
	}
	return clean
}

// revertedNothing reports whether an attempt ended without any resource in its
// state before the call.
func (u *Reversal) revertedNothing() bool {
	return u.Reverted != nil && portion(cleanOf(u.Reverted.Results), len(u.Reverted.Results)) == "none"
}

// WorkedOn reports whether a transaction tried to revert or redo the call.
func (c *Call) WorkedOn(txn string) bool {
	return slices.ContainsFunc(c.tries, func(u *Reversal) bool { return u.Txn == txn })
}

// Redoable reports whether a redo of a revert transaction can restore something
// of t. It cannot restore what a tool's own Revert did: one redo reports that,
// and the next does not repeat it.
func (t *Txn) Redoable(undo string) bool {
	return slices.ContainsFunc(t.revertedCalls(undo), func(c *Call) bool {
		return len(c.revertChanges(undo)) > 0 || !slices.ContainsFunc(c.tries, func(u *Reversal) bool {
			return u.Reverting.Cause == causeRedo && !u.away && u.at > c.Reversal.at
		})
	})
}

// takenAfter returns the newest revert transaction after the named one that
// reverted another part of the call, or "" if there is none.
func (c *Call) takenAfter(undo string) string {
	all := c.attempts()
	named := slices.IndexFunc(all, func(u *Reversal) bool { return u.Txn == undo })
	if named < 0 {
		return ""
	}
	for _, u := range slices.Backward(all[named:]) {
		if u.Txn != undo && len(c.revertChanges(u.Txn)) > 0 {
			return u.Txn
		}
	}
	return ""
}
