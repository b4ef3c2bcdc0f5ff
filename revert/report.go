package revert

import (
	"strings"

	"github.com/remit-dev/remit/revert/effect"
)

// Report is the result of a revert or a redo: one item for each resource that
// it concerns. It lists everything that was left unchanged.
type Report struct {
	Txn       string           `json:"txn"`                  // the subject transaction
	RevertTxn string           `json:"revert_txn,omitempty"` // the revert transaction, if there is one
	State     TxnState         `json:"state"`                // state of Txn afterwards
	Items     []ResourceResult `json:"items"`
	// Contacted are the hosts that programs of the calls reached through their
	// proxies, such as https://packages.example.com. What was sent there stays
	// sent; no item is about it.
	Contacted []string `json:"contacted,omitempty"`
	// Dependents are the dependent calls. Only a preview lists them.
	Dependents []Dependent `json:"dependents,omitempty"`
	// Named are the roots whose folder the requester named in place of the
	// recorded one.
	Named []NamedRoot `json:"named_roots,omitempty"`
}

// NamedRoot is a root whose folder the requester of a revert or a redo named.
// Only the content of its files shows that it is a copy of the recorded one.
type NamedRoot struct {
	Root string `json:"root"`
	Path string `json:"path"` // folder that was used
	Was  string `json:"was"`  // folder that the session's record names
}

// ResourceResult is the result for one resource of one call.
type ResourceResult struct {
	Txn    string `json:"txn,omitempty"` // transaction of the call, if it is not the report's
	Call   string `json:"call"`
	Tool   string `json:"tool"`
	Action string `json:"does,omitempty"` // ActionDrop; else the kind of change that restores it, such as delete
	effect.Result
	// Overlaps are the lines of a conflict that the call and another actor both
	// changed, if Options.Overlaps is set.
	Overlaps []effect.Overlap `json:"overlaps,omitempty"`

	was effect.Token // version before the item changed the resource
}

// ActionDrop is the action of an item that removes a held call from the queue.
// Its outcome is Already, because the call had no effect.
const ActionDrop = "drop"

// Dependent is a dependent call: it changed a resource after a call that is to
// be reverted.
type Dependent struct {
	Txn      string `json:"txn"`
	Call     string `json:"call"`
	Tool     string `json:"tool"`
	Included bool   `json:"along"` // it is reverted too; otherwise it stays and is a conflict
}

// NotReverted returns the items that are not clean.
func (r Report) NotReverted() []ResourceResult {
	left := []ResourceResult{}
	for _, i := range r.Items {
		if !i.Outcome.Clean() {
			left = append(left, i)
		}
	}
	return left
}

// Complete reports whether nothing is left. A report without a state, which
// comes with an error, is never complete.
func (r Report) Complete() bool { return r.State != "" && len(r.NotReverted()) == 0 }

// addChanges adds the changes that the steps of a call made to its items, and
// the overlaps that prevented a merge.
func (m revertMode) addChanges(items []ResourceResult, steps []effect.Step) {
	last := make(map[string]int, len(steps)) // index of the last step by resource
	for n, s := range steps {
		last[s.Change.Resource] = n
	}
	for i := range items {
		n, ok := last[items[i].Resource]
		switch {
		case !ok:
		case items[i].Outcome.Applies():
			items[i].Action, items[i].was = steps[n].Change.Kind, steps[n].Change.Pre
		case items[i].Outcome == effect.Conflict:
			items[i].Overlaps = m.overlaps[items[i].Resource]
		}
	}
}

// PerResource returns the report with one item for each resource, like a
// preview: the first that is not clean, or the combined result. Effects of
// tools outside handles keep one item for each call.
func (r Report) PerResource() Report {
	items, at := []ResourceResult{}, map[string]int{}
	for _, i := range r.Items {
		n, again := at[i.Resource]
		if !again || strings.HasPrefix(i.Resource, "tool://") {
			at[i.Resource] = len(items)
			items = append(items, i)
			continue
		}
		items[n] = items[n].then(i)
	}
	r.Items = items
	return r
}

// then combines an item with a later one of the same resource.
func (i ResourceResult) then(next ResourceResult) ResourceResult {
	switch {
	case !i.Outcome.Clean():
		return i
	case !next.Outcome.Clean() || i.Outcome == effect.Already:
		return next
	case next.Outcome == effect.Already:
		return i
	case i.was == effect.Absent && next.Now == effect.Absent:
		i.Outcome, i.Action = effect.Already, ""
	case next.Now == effect.Absent:
		i.Action = next.Action
	case i.was != effect.Absent && i.Action != next.Action:
		i.Action = "write"
	}
	if next.Outcome == effect.Merged && i.Outcome.Applies() {
		i.Outcome, i.Why = next.Outcome, next.Why
	}
	i.Now, i.Forced = next.Now, i.Forced || next.Forced
	return i
}

// RevertSummary says how many of the results are clean: all, some or none.
//
//nolint:revive // Summary alone does not say of what
func RevertSummary(results []effect.Result) string { return portion(cleanOf(results), len(results)) }

func cleanOf(results []effect.Result) (n int) {
	for _, r := range results {
		if r.Outcome.Clean() {
			n++
		}
	}
	return n
}

func portion(n, of int) string {
	switch n {
	case of:
		return "all"
	case 0:
		return "none"
	default:
		return "some"
	}
}
