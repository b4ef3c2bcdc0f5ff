package revert

import (
	"cmp"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// The kinds of a NetEffect, as perm.EffectFacts describes them.
const (
	netCreate  = "create"
	netWrite   = "write"
	netDelete  = "delete"
	netCall    = "call"    // effects of a call that no change describes
	netConnect = "connect" // a program reached the host
	netRelease = "release" // the commit runs the held call
)

// NetEffect is one effect of a transaction, as of now: what a commit makes
// permanent, or releases.
type NetEffect struct {
	Kind     string
	Resource string
	Class    effect.Class    // of several calls, the one that is hardest to revert
	Coverage effect.Coverage // of several calls, the least
	Tool     string          // of the last call
	Call     string          // the last call
	Unknown  bool            // the outcome of a call cannot be determined
}

// NetEffects returns what the transaction did and did not revert, without what
// it changed back itself: a resource whose version is the one before the
// transaction has no effect, unless another actor changed it in between. Effects
// that are harder to revert come first, then they are sorted by their texts.
func (t *Txn) NetEffects() []NetEffect {
	n := netEffects{at: map[string]*netChange{}}
	for _, c := range t.Calls {
		n.add(c)
	}
	var all []NetEffect
	for _, r := range n.order {
		//mutant:none what a policy sees of a commit; no revert relies on it
		if r.whole && r.first.Same(r.last) {
			continue
		}
		r.effect.Kind = r.kind()
		all = append(all, r.effect)
	}
	all = append(all, n.others...)
	slices.SortStableFunc(all, NetEffect.compare)
	return all
}

func (e NetEffect) compare(o NetEffect) int {
	if e.Unknown != o.Unknown {
		if e.Unknown {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(o.Class), rank(e.Class)), cmp.Compare(e.Kind, o.Kind), cmp.Compare(e.Resource, o.Resource), cmp.Compare(e.Call, o.Call))
}

// rank orders classes, mildest first.
func rank(c effect.Class) int { return slices.Index(effect.Classes(), c.OrPivot()) }

func rankCoverage(c effect.Coverage) int {
	return slices.Index([]effect.Coverage{effect.Confined, effect.Observed, effect.Declared}, c)
}

// netEffects collects the effects of calls.
type netEffects struct {
	at     map[string]*netChange // by resource
	order  []*netChange
	others []NetEffect
}

// netChange is what the calls of a transaction made of one resource.
type netChange struct {
	effect      NetEffect
	first, last effect.Token
	whole       bool // no other actor changed the resource between the calls
}

func (r *netChange) kind() string {
	//mutant:none what a policy sees of a commit
	switch before, after := !r.first.Same(effect.Absent), !r.last.Same(effect.Absent); {
	case !after:
		return netDelete
	case !before:
		return netCreate
	}
	return netWrite
}

func (n *netEffects) add(c *Call) {
	one := NetEffect{Class: c.Class(), Coverage: effect.Declared, Tool: c.Tool.Name, Call: c.Ref.Call, Unknown: c.Phase == PhaseUnknown || c.Phase == PhaseStarted}
	if c.Started != nil {
		one.Coverage = c.Started.Covers()
	}
	for _, h := range c.ContactedHosts() { // a revert does not take back what was sent
		host := one
		host.Kind, host.Resource, host.Unknown = netConnect, h.Origin+"/", false
		n.others = append(n.others, host)
	}
	if c.IsHeld() {
		one.Kind, one.Coverage = netRelease, c.Held.Covers()
		n.accesses(c, one)
	}
	if !c.HasEffects() {
		return
	}
	for _, ch := range c.remaining() {
		n.change(ch, one)
	}
	if !c.Confined() && c.Class() != effect.Pure || len(c.Changes) == 0 {
		one.Kind = netCall
		n.accesses(c, one)
	}
}

// change adds a change of a resource.
func (n *netEffects) change(ch effect.Change, one NetEffect) {
	one.Resource = ch.Resource
	r := n.at[ch.Resource]
	if r == nil {
		r = &netChange{effect: one, first: ch.Pre, last: ch.Post, whole: true}
		n.at[ch.Resource] = r
		n.order = append(n.order, r)
		return
	}
	was := r.effect
	//mutant:none what a policy sees of a commit
	r.whole = r.whole && r.last.Same(ch.Pre)
	r.last, r.effect = ch.Post, one
	r.effect.Unknown = one.Unknown || was.Unknown
	if rank(was.Class) > rank(one.Class) {
		r.effect.Class = was.Class
	}
	if rankCoverage(was.Coverage) > rankCoverage(one.Coverage) {
		r.effect.Coverage = was.Coverage
	}
}

// accesses adds an effect for each decided access of a call that does more than
// read, or for its tool if there is none.
func (n *netEffects) accesses(c *Call, one NetEffect) {
	var decided []record.Access
	switch {
	case c.Started != nil:
		decided = c.Started.Access
	case c.Held != nil:
		decided = c.Held.Access
	}
	some := false
	for _, a := range decided {
		if a.Action != "read" && a.Action != "list" {
			e := one
			e.Resource, some = a.Resource, true
			n.others = append(n.others, e)
		}
	}
	if !some {
		one.Resource = c.toolResource()
		n.others = append(n.others, one)
	}
}
