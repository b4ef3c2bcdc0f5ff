package record

import (
	"encoding/json"
	"time"
)

// Facts are what the policy saw when it decided, and what no other record has.
// Together with the records of the session, they allow a program to decide the
// same request again. They describe the decision before the call, or, in a
// record with During, the one about an access of the running call.
type Facts struct {
	Time  time.Time `json:"time"`  // input.time
	Calls int       `json:"calls"` // input.txn.calls
	Depth int       `json:"depth,omitempty"`
	// Labels and Requires count the labels and requirements of the session.
	Labels     int `json:"labels,omitempty"`
	Requires   int `json:"requires,omitempty"`
	BatchIndex int `json:"batch_index,omitempty"`
	BatchCount int `json:"batch_count,omitempty"` // absent: a single call
	// Script is input.call.script. It is absent if the call runs no script, or
	// if Input is redacted.
	Script json.RawMessage `json:"script,omitempty"`
	// URLs is input.call.urls, and Provided is input.access.user_provided, by
	// resource. They are absent like Script, and if the policy did not read them.
	URLs     json.RawMessage `json:"urls,omitempty"`
	Provided map[string]bool `json:"provided,omitempty"`
	// Values is input.call.values, and ValuesCut is input.call.values_cut. They
	// are absent like URLs.
	Values    json.RawMessage `json:"values,omitempty"`
	ValuesCut bool            `json:"values_cut,omitempty"`
}

// Order places a decision among those of its session, so that a reader of the
// journal can compute the counts that the policy saw. The owner of a
// transaction numbers the events of each session from 1: the beginning of each
// call and its end. A session that it continues begins again with 1.
type Order struct {
	Number int   `json:"n"`                // of the beginning of the call
	Before []int `json:"before,omitempty"` // earlier numbers of the same call: a filter replaced its input
	From   int64 `json:"from,omitempty"`   // position up to which the owner counted the session when it continued it
	// Ended are the ends since the last decision that is on the journal.
	Ended []EndedCall `json:"ended,omitempty"`
	// Counts are what the call adds to the counters of its session, in a record
	// without counts of its own.
	Counts map[string]json.Number `json:"counts,omitempty"`
	// Tool is input.tool, in the first decisions of the owner about this
	// declaration in the session.
	Tool json.RawMessage `json:"tool,omitempty"`
	// Counters are the counters that each tool of the session declares, in the
	// first decisions after they changed.
	Counters map[string][]string `json:"counters,omitempty"`
}

// EndedCall is the end of a call, as the counts of its session saw it.
type EndedCall struct {
	Number int    `json:"n"`
	Call   string `json:"call"`
	Status string `json:"status,omitempty"` // absent: done
	// Began, Tool, Counts and At are set if no decision about the call was on the
	// journal at its end.
	Began  int                    `json:"began,omitempty"`
	Tool   string                 `json:"tool,omitempty"`
	Counts map[string]json.Number `json:"counts,omitempty"`
	At     *time.Time             `json:"at,omitempty"`
}

// Sums returns Counts, or nil without an order.
func (o *Order) Sums() map[string]json.Number {
	if o == nil {
		return nil
	}
	return o.Counts
}
