package revert

// Report is what taking something back came to: one item for each resource that
// something was to be done about. Nothing that is left is left out.
type Report struct {
	Txn   string   `json:"txn"`            // what was taken back
	Undo  string   `json:"undo,omitempty"` // the undo transaction, where there is one
	State TxnState `json:"state"`          // of Txn, afterwards
	Items []Item   `json:"items"`
}

// Item is one resource of one call.
type Item struct {
	Txn  string `json:"txn,omitempty"` // of the call, where it is another than the report's
	Call string `json:"call"`
	Tool string `json:"tool"`
	Result
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
func TakenBack(results []Result) string {
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
