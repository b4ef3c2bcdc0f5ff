package revert

import "github.com/remit-dev/remit/revert/effect"

// Report is what taking something back came to: one item for each resource that
// something was to be done about. Nothing that is left is left out.
type Report struct {
	Txn   string   `json:"txn"`            // what was taken back
	Undo  string   `json:"undo,omitempty"` // the undo transaction, where there is one
	State TxnState `json:"state"`          // of Txn, afterwards
	Items []Item   `json:"items"`
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

// Item is one resource of one call.
type Item struct {
	Txn  string `json:"txn,omitempty"` // of the call, where it is another than the report's
	Call string `json:"call"`
	Tool string `json:"tool"`
	Does string `json:"does,omitempty"` // DoesDrop; else only of a preview: the kind of change that restores it, such as delete
	effect.Result
}

// DoesDrop is what an Item does about a call that was held: it takes it out of the
// queue. The outcome is Already: nothing of the call has happened.
const DoesDrop = "drop"

// Dependent is a call that changed a resource after one that is to be taken back.
type Dependent struct {
	Txn   string `json:"txn"`
	Call  string `json:"call"`
	Tool  string `json:"tool"`
	Along bool   `json:"along"` // it is taken back too; else it stays, and stands in the way
}

// NotUndone lists the items that are not clean.
func (r Report) NotUndone() []Item {
	left := []Item{}
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

// TakenBack says how much of a set of results is clean: all, some or none.
func TakenBack(results []effect.Result) string {
	clean := 0
	for _, r := range results {
		if r.Outcome.Clean() {
			clean++
		}
	}
	switch {
	case clean == len(results):
		return "all"
	case clean == 0:
		return "none"
	default:
		return "some"
	}
}
