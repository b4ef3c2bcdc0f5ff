package rego

import (
	"fmt"

	"github.com/remit-dev/remit/perm"
)

// noRule is the reason of a denial without a rule.
const noRule = "no rule allows this"

// noCommitRule is the reason of a commit that no rule denies or asks about.
const noCommitRule = "no rule denies or asks about this commit"

// compose combines the sets into one decision: first denials, then ask, hold,
// allow. Without a match it denies.
func (a setElements) compose(r *perm.Request, bad func(set, text string) string) (perm.Effect, perm.Details) {
	d := a.details()
	if r.Purpose == perm.PurposeCommit {
		return a.composeCommit(d)
	}
	refused := a.refusals(r, bad)
	asks, holds, allows := a.reasons(setAsk), a.reasons(setHold), a.reasons(setAllow)
	switch {
	case len(refused) > 0:
		d.Reasons = refused
		return perm.Deny, d
	case len(asks) > 0:
		// If both ask and hold match, the call is held after its approval.
		d.Reasons = append(asks, holds...)
		d.Remember = a.remember()
		return perm.Ask, d
	case len(holds) > 0:
		d.Reasons = holds
		return perm.Hold, d
	case len(allows) > 0:
		d.Reasons = allows
		return perm.Allow, d
	default:
		d.Reasons = []perm.Reason{{Text: noRule, Set: setDeny}}
		return perm.Deny, d
	}
}

// composeCommit combines the sets that decide a commit. Without a match the
// transaction commits: the policy decided about each of its calls.
func (a setElements) composeCommit(d perm.Details) (perm.Effect, perm.Details) {
	if d.Reasons = a.reasons(setDenyCommit); len(d.Reasons) > 0 {
		return perm.Deny, d
	}
	if d.Reasons = a.reasons(setAskCommit); len(d.Reasons) > 0 {
		return perm.Ask, d
	}
	d.Reasons = []perm.Reason{{Text: noCommitRule, Set: setAllow}}
	return perm.Allow, d
}

// refusals returns every reason for a denial: the denials of rules, elements
// that cannot be applied, and failed postconditions.
func (a setElements) refusals(r *perm.Request, bad func(set, text string) string) []perm.Reason {
	out := append(a.reasons(setDeny), a.reasons(setLimit)...)
	out = append(out, a.reasons(setEnsure)...)
	if !canHold(r.Call.EffectClass) {
		for _, h := range a.reasons(setHold) {
			h.Text = fmt.Sprintf("%s: only deferrable and pivot calls can be held, this one is %s", h.Text, r.Call.EffectClass)
			out = append(out, h)
		}
	}
	for _, set := range []string{setRequire, setRedact, setMask} {
		for _, e := range a[set] {
			if e.sound {
				continue
			}
			if why := bad(set, e.text); why != "" {
				out = append(out, perm.Reason{Text: fmt.Sprintf("%s %q cannot be met: %s", set, e.text, why), At: e.at, Set: set})
			}
		}
	}
	return out
}

// canHold reports whether a call of this class may wait for the commit. A call
// that can be reverted does not need to wait, and later calls may build on it.
func canHold(class string) bool { return class == "deferrable" || class == "pivot" }

// details returns all parts of the decision beside the effect.
func (a setElements) details() perm.Details {
	return perm.Details{
		Hints: a.texts(setHint), Labels: a.texts(setLabel), Redact: a.texts(setRedact), Masks: a.texts(setMask),
		Requires: a.reasons(setRequire), FailedPostconditions: a.reasons(setEnsure), HideReasons: a.reasons(setHide),
		Limits: a.limits(),
	}
}

func (a setElements) reasons(set string) []perm.Reason {
	list := a[set]
	if len(list) == 0 {
		return nil
	}
	out := make([]perm.Reason, 0, len(list))
	for _, e := range list {
		if e.limit == nil { // a budget is no reason until it is used up
			out = append(out, perm.Reason{Text: e.text, At: e.at, Set: set})
		}
	}
	return out
}

// texts returns the elements of a set without positions, each once, in order.
func (a setElements) texts(set string) []string {
	list := a[set]
	if len(list) == 0 {
		return nil
	}
	out, seen := make([]string, 0, len(list)), make(map[string]bool, len(list))
	for _, e := range list {
		if !seen[e.text] {
			seen[e.text] = true
			out = append(out, e.text)
		}
	}
	return out
}
