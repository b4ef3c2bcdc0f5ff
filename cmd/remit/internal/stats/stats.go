package stats

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// ToolStats is what became of the calls of one declaration. Each call counts once, in Done or in
// one of the counts down to InFlight.
type ToolStats struct {
	Name   string `json:"name"`   // empty: calls of tools that there were not
	Digest string `json:"digest"` // empty with Name
	Calls  int    `json:"calls"`

	Done         int `json:"done"`
	Denied       int `json:"denied"` // also while it ran
	Invalid      int `json:"invalid"`
	Failed       int `json:"failed"` // also cancelled, and out of time; without effect
	VerifyFailed int `json:"verify_failed"`
	Unknown      int `json:"unknown"`
	Waiting      int `json:"waiting"` // for an answer, or for the commit
	Dropped      int `json:"dropped"` // held, and never run
	InFlight     int `json:"in_flight"`

	Reverted        int `json:"reverted"`         // calls with outcome done or unknown that a revert took back completely
	RevertedPartial int `json:"reverted_partial"` // and of those: it was tried, and something of it is left

	Time      Latency                   `json:"time"`
	Feedback  map[provenance.Rating]int `json:"feedback"` // of each person the newest for each call
	SelfRated int                       `json:"own"`      // of that: said by who had asked for the call
	Last      time.Time                 `json:"last"`     // when its newest call began
}

// Latency are those between the write-ahead record of a call and its result, on the clock of
// the journal. A call that waited for an answer or for the commit counts from when it
// started. What was erased, found after a crash, or said by a person has no time.
type Latency struct {
	Count int           `json:"count"`
	P50   time.Duration `json:"p50"` // nanoseconds; by nearest rank: the least time that half of the calls did not exceed
	P99   time.Duration `json:"p99"`
	// Exact is false where there were too many to keep each: P50 and P99 are then the
	// upper ends of their steps, less than a 64th too long and never too short.
	Exact bool `json:"exact"`
}

// Read counts the calls on a journal, by name and then by the newest call, newest first. It
// ends with an error where a transaction cannot be told.
func Read(ctx context.Context, j journal.Journal) ([]ToolStats, error) {
	rows := map[[2]string]*statsRow{}
	for e, err := range j.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindBegun}}) {
		if err != nil {
			return nil, err
		}
		t, err := revert.Load(ctx, j, e.Header.Txn)
		if err != nil {
			return nil, err
		}
		for _, c := range t.Calls {
			key := [2]string{c.Tool.Name, c.Tool.Digest}
			if c.Tool.Digest == "" { // no such tool: the name comes from the caller
				key = [2]string{}
			}
			if rows[key] == nil {
				rows[key] = &statsRow{ToolStats: ToolStats{Name: key[0], Digest: key[1], Feedback: map[provenance.Rating]int{}}}
			}
			rows[key].add(c)
		}
	}
	out := []ToolStats{}
	for _, r := range rows {
		r.Time = r.times.sum()
		out = append(out, r.ToolStats)
	}
	slices.SortFunc(out, func(a, b ToolStats) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), b.Last.Compare(a.Last), cmp.Compare(a.Digest, b.Digest))
	})
	return out, nil
}

// statsRow is a Tool while it is counted.
type statsRow struct {
	ToolStats
	times times
}

func (r *statsRow) add(c *revert.Call) {
	r.Calls++
	*r.count(c)++
	if c.Began.After(r.Last) {
		r.Last = c.Began
	}
	if c.Done != nil && !c.Done.Recovered && c.Started != nil {
		r.times.add(c.Ended.Sub(c.Began))
	}
	if c.Reversal != nil && c.Reversal.Reverted != nil && (c.Phase == revert.PhaseDone || c.Phase == revert.PhaseUnknown) && verified(c) {
		if c.IsReverted() {
			r.Reverted++
		} else {
			r.RevertedPartial++
		}
	}
	for i, f := range c.Feedback {
		if slices.ContainsFunc(c.Feedback[i+1:], func(later provenance.Feedback) bool { return later.By == f.By }) {
			continue
		}
		r.Feedback[f.Verdict]++
		if f.BySelf {
			r.SelfRated++
		}
	}
}

// verified reports whether the look after the call found nothing broken.
func verified(c *revert.Call) bool {
	return !slices.ContainsFunc(c.Verified, func(v record.Verified) bool { return v.Phase == "call" && !v.OK })
}

// count is the one count that a call belongs to.
func (r *statsRow) count(c *revert.Call) *int {
	switch c.Phase {
	case revert.PhaseErased:
		return r.erased(c.Erased)
	case revert.PhaseDone:
		if !verified(c) {
			return &r.VerifyFailed
		}
		return &r.Done
	case revert.PhaseFailed:
		return r.ended(c.Failed.Status)
	case revert.PhaseDenied:
		return r.ended(c.Denied.Status())
	case revert.PhaseInvalid, revert.PhaseUnknown:
		return r.ended(string(c.Phase))
	case revert.PhasePending, revert.PhaseHeld:
		return &r.Waiting
	case revert.PhaseDropped:
		return &r.Dropped
	case revert.PhaseStarted:
	}
	return &r.InFlight
}

// erased returns the counter for a call whose record is erased.
func (r *statsRow) erased(e *record.Erased) *int {
	switch {
	case e.Status != "":
		return r.ended(e.Status)
	case e.As == string(revert.PhasePending):
		return &r.Waiting
	default:
		return &r.Dropped
	}
}

// ended is the count of an outcome.
func (r *statsRow) ended(status string) *int {
	switch status {
	case "done":
		return &r.Done
	case "denied":
		return &r.Denied
	case "invalid":
		return &r.Invalid
	case "verify_failed":
		return &r.VerifyFailed
	case "unknown":
		return &r.Unknown
	default: // failed, cancelled, timeout
		return &r.Failed
	}
}
