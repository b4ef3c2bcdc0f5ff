package files

import (
	"slices"

	"github.com/remit-dev/remit/revert/effect"
)

// changeChain holds consecutive changes of one call to one resource, without
// changes by others between them. Its versions lead from Pre of the first to
// Post of the last.
type changeChain struct {
	resource string
	changes  []effect.Change
}

func (c changeChain) numbers() []int {
	var of []int
	for _, ch := range c.changes {
		of = append(of, ch.N)
	}
	return of
}

// pre returns the version to restore.
func (c changeChain) pre() effect.Token { return c.changes[0].Pre }

// left reports whether the call left a version. Not only the last one counts: a
// change that was recorded but did not happen leaves the version before it.
func (c changeChain) left(t effect.Token) bool {
	//mutant:token
	return slices.ContainsFunc(c.changes, func(ch effect.Change) bool { return ch.Post.Same(t) })
}

//mutant:token
func (c changeChain) knows(t effect.Token) bool { return c.pre().Same(t) || c.left(t) }

// chains groups the changes of a call by resource, in the order of first use.
// It separates changes that had no effect. If a change found a version that the
// call had not left, another process changed the resource in between. Then the
// earlier changes form their own chain, which cannot be reverted.
func chains(changes []effect.Change) (current, broken []changeChain, idle []effect.Change) {
	at := map[string]int{}
	for _, c := range changes {
		i, seen := at[c.Resource]
		switch {
		//mutant:token
		case c.Pre.Same(c.Post) && c.Kind != kindTouch:
			idle = append(idle, c)
		case !seen:
			at[c.Resource] = len(current)
			current = append(current, changeChain{resource: c.Resource, changes: []effect.Change{c}})
		case current[i].knows(c.Pre):
			current[i].changes = append(current[i].changes, c)
		default:
			broken = append(broken, current[i])
			current[i].changes = []effect.Change{c}
		}
	}
	return current, broken, idle
}
