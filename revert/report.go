package revert

import (
	"strings"

	"github.com/remit-dev/remit/revert/effect"
)

// Report is what taking something back came to: one item for each resource that
// something was to be done about. Nothing that is left is left out.
type Report struct {
	Txn   string           `json:"txn"`            // what was taken back
	Undo  string           `json:"undo,omitempty"` // the undo transaction, where there is one
	State TxnState         `json:"state"`          // of Txn, afterwards
	Items []ResourceResult `json:"items"`
	// Dependents are calls that lie on what is to be taken back. Only a preview
	// lists them.
	Dependents []Dependent `json:"dependents,omitempty"`
	// Named are the roots whose folder is another one than the recorded, by the word
	// of the person who asked.
	Named []NamedRoot `json:"named_roots,omitempty"`
}

// NamedRoot is a root whose folder the person who asked for a revert or a redo named.
// Nothing shows that it is a copy of the recorded one but the content of its files.
type NamedRoot struct {
	Root string `json:"root"`
	Path string `json:"path"` // folder that was used
	Was  string `json:"was"`  // folder that the session's record names
}

// ResourceResult is one resource of one call.
type ResourceResult struct {
	Txn    string `json:"txn,omitempty"` // of the call, where it is another than the report's
	Call   string `json:"call"`
	Tool   string `json:"tool"`
	Action string `json:"does,omitempty"` // ActionDrop; else the kind of change that restores it, such as delete
	effect.Result

	was effect.Token // version that was there before, where the item changed it
}

// ActionDrop is what an Item does about a call that was held: it takes it out of the
// queue. The outcome is Already: nothing of the call has happened.
const ActionDrop = "drop"

// Dependent is a call that changed a resource after one that is to be taken back.
type Dependent struct {
	Txn      string `json:"txn"`
	Call     string `json:"call"`
	Tool     string `json:"tool"`
	Included bool   `json:"along"` // it is taken back too; else it stays, and stands in the way
}

// NotUndone lists the items that are not clean.
func (r Report) NotUndone() []ResourceResult {
	left := []ResourceResult{}
	for _, i := range r.Items {
		if !i.Outcome.Clean() {
			left = append(left, i)
		}
	}
	return left
}

// Complete reports whether nothing is left. A report without a state, which
// comes with an error, never is.
func (r Report) Complete() bool { return r.State != "" && len(r.NotUndone()) == 0 }

// did adds what the steps of a call changed to its items.
func did(items []ResourceResult, steps []effect.Step) {
	last := make(map[string]int, len(steps)) // of each resource
	for n, s := range steps {
		last[s.Change.Resource] = n
	}
	for i := range items {
		if n, ok := last[items[i].Resource]; ok && items[i].Outcome == effect.Restored {
			items[i].Action, items[i].was = steps[n].Change.Kind, steps[n].Change.Pre
		}
	}
}

// PerResource is the report with one item for each resource, as a preview has it: the
// first that is not clean, or what all of them did together. Effects of tools outside
// handles stay an item for each call.
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

// then is what an item and a later one of the same resource did together.
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
	i.Now, i.Forced = next.Now, i.Forced || next.Forced
	return i
}

// RevertSummary says how much of a set of results is clean: all, some or none.
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
