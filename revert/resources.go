package revert

import (
	"context"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
)

// resourceFilter limits a revert to some resources. A nil filter selects all.
type resourceFilter struct {
	named []string        // with everything below them
	also  map[string]bool // exactly these: named ones cannot be reverted without them
}

// filter returns the filter of the options.
func (u Options) filter() *resourceFilter {
	if len(u.Resources) == 0 {
		return nil
	}
	return &resourceFilter{named: u.Resources, also: map[string]bool{}}
}

// limited reports whether only a part of a transaction is to be reverted.
func (u Options) limited() bool { return len(u.Calls)+len(u.Resources) > 0 }

// filterOf returns the filter of an earlier revert: what its plan has. A revert
// without a limit has no filter.
func (u *Reversal) filterOf() *resourceFilter {
	if !u.Reverting.Part {
		return nil
	}
	f := &resourceFilter{also: map[string]bool{}}
	for _, s := range u.Reverting.Steps {
		f.also[s.Change.Resource] = true
	}
	return f
}

func (f *resourceFilter) selects(resource string) bool {
	if f == nil || f.also[resource] || slices.Contains(f.named, resource) {
		return true
	}
	for above := range Ancestors(resource) {
		if slices.Contains(f.named, above) {
			return true
		}
	}
	return false
}

// remaining returns the remaining changes of a call that the filter selects.
func (f *resourceFilter) remaining(c *Call) []effect.Change {
	left := c.remaining()
	if f == nil {
		return left
	}
	return slices.DeleteFunc(left, func(ch effect.Change) bool { return !f.selects(ch.Resource) })
}

// results drops the results of resources that the filter does not select.
func (f *resourceFilter) results(all []effect.Result) []effect.Result {
	if f == nil {
		return all
	}
	return slices.DeleteFunc(all, func(r effect.Result) bool { return !f.selects(r.Resource) })
}

// within returns the calls of which the filter selects something. It first adds
// what the selected resources cannot be reverted without, in these calls:
//   - an enclosing resource that a call removed: without it there is no place to
//     restore to;
//   - the other end of a move: one end alone would lose the content.
func (f *resourceFilter) within(calls []*Call) []*Call {
	if f == nil {
		return calls
	}
	for f.grow(calls) {
	}
	return slices.DeleteFunc(slices.Clone(calls), func(c *Call) bool { return len(f.remaining(c)) == 0 })
}

// grow adds resources once, and reports whether it added any.
func (f *resourceFilter) grow(calls []*Call) (more bool) {
	gone := map[string]bool{}
	for _, c := range calls {
		for _, ch := range c.remaining() {
			//mutant:token
			if ch.Post.Same(effect.Absent) {
				gone[ch.Resource] = true
			}
		}
	}
	add := func(resource string) {
		if !f.selects(resource) {
			f.also[resource], more = true, true
		}
	}
	for _, c := range calls {
		ends := c.moves()
		for _, ch := range f.remaining(c) {
			if end, ok := ends[ch.Resource]; ok {
				add(end)
			}
			for above := range Ancestors(ch.Resource) {
				if gone[above] {
					add(above)
				}
			}
		}
	}
	return more
}

// moves maps each end of a move to the other one. The call removed a version at
// one resource and created the same one at another, and did so nowhere else.
func (c *Call) moves() map[string]string {
	type ends struct{ from, to []string }
	by := map[effect.Token]*ends{}
	at := func(t effect.Token) *ends {
		if by[t] == nil {
			by[t] = &ends{}
		}
		return by[t]
	}
	for _, ch := range c.Changes {
		//mutant:token
		switch pre, post := ch.Pre.Same(effect.Absent), ch.Post.Same(effect.Absent); {
		case pre && !post && ch.Post.Known():
			at(ch.Post).to = append(at(ch.Post).to, ch.Resource)
		case post && !pre && ch.Pre.Known():
			at(ch.Pre).from = append(at(ch.Pre).from, ch.Resource)
		}
	}
	other := map[string]string{}
	for _, e := range by {
		if len(e.from) == 1 && len(e.to) == 1 {
			other[e.from[0]], other[e.to[0]] = e.to[0], e.from[0]
		}
	}
	return other
}

// leaves reports whether the revert leaves an effect of the call that a whole
// revert reverts. The tool's own Revert belongs to the whole call.
func (m revertMode) leaves(ctx context.Context, w Environment, c *Call) bool {
	if m.only == nil {
		return false
	}
	can := false
	if w.ToolReverter != nil {
		can, _ = w.ToolReverter.CanRevert(ctx, *c)
	}
	outcome, needed := c.outsideOutcome(can)
	return needed && outcome != effect.Already || len(m.only.remaining(c)) < len(c.remaining())
}

// revertedAsAsked reports whether each revert of the call since a position of the
// journal was limited to some resources, and all of these are reverted.
func (c *Call) revertedAsAsked(since int64) bool {
	clean := c.cleared()
	return !slices.ContainsFunc(c.attempts(), func(u *Reversal) bool {
		left := func(s effect.Step) bool { return !clean[s.Change.Resource] }
		return u.at > since && (!u.Reverting.Part || slices.ContainsFunc(u.Reverting.Steps, left))
	})
}
