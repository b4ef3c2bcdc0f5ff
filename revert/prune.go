package revert

import (
	"context"
	"maps"
	"slices"
	"time"
)

// The defaults of Retention.
const (
	DefaultKeep     = 30 * 24 * time.Hour
	DefaultKeepLast = 10
)

// Retention says how long the journal keeps revert data. It is counted in
// journal time: the time between one beginning or end of a transaction and the
// next, where a gap of more than a day counts as a day, and a step back of the
// clock as zero. So a clock that jumps makes nothing old, and a journal without
// new transactions keeps its data.
type Retention struct {
	MaxAge   time.Duration // minimum age since the end of a transaction
	KeepLast int           // the newest ended transactions that always stay
	DryRun   bool          // only report what would be deleted
}

// PruneReport is the result of Prune.
type PruneReport struct {
	Txns    int        `json:"txns"`              // transactions that can no longer be reverted or redone
	Calls   int        `json:"calls"`             // calls whose records were erased, including reverts
	Kept    []StaleTxn `json:"kept"`              // past retention, but kept
	Content int64      `json:"content"`           // bytes of content that they referred to; other records can refer to some of it too
	Blobs   int64      `json:"blobs"`             // number of deleted blobs
	Freed   int64      `json:"freed"`             // bytes by which the store shrank
	Size    int64      `json:"size"`              // bytes that remain in the store; 0: dry run
	Waiting string     `json:"waiting,omitempty"` // see journal.GCReport
}

// StaleTxn is a transaction that is past retention and needs a person's
// attention.
type StaleTxn struct {
	Txn string `json:"txn"`
	Why string `json:"why"`
}

// Prune deletes the revert data of transactions that are past retention: the
// bodies of their calls' records, and content without other references. The
// remaining records say which tools were called, how the calls ended and what
// they changed. Prune keeps a transaction that has not ended, whose revert is
// not complete, or that has a call with an unknown outcome, and every
// transaction linked with such a one. It prunes each transaction in one step
// with its revert transactions. The next prune completes one whose process
// died.
func (r *Reverter) Prune(ctx context.Context, keep Retention) (PruneReport, error) {
	return r.Retain(keep).Run(ctx)
}

// prunable loads a transaction with its linked transactions. It returns them if
// all can be pruned. waits reports whether they may be pruned later; the reason
// is added to out.
func (r *Reverter) prunable(ctx context.Context, id string, limit int64, out *PruneReport) (p part, waits bool, err error) {
	t, err := r.Load(ctx, id)
	switch {
	case err != nil || t.Reverts+t.Redoes != "":
		return p, false, err
	case !t.hasRecords():
		return p, t.End == "", nil // an open one may get some
	}
	g, err := r.grouped(ctx, t)
	if err != nil {
		return p, false, err
	}
	ids := slices.Sorted(maps.Keys(g))
	for _, id := range ids { // transactions with a shared revert are pruned with the first of them
		if o := g[id]; o.Reverts+o.Redoes == "" && o.hasRecords() && (o.Began.Before(t.Began) || (o.Began.Equal(t.Began) && o.ID < t.ID)) {
			return p, true, nil
		}
	}
	for _, id := range ids {
		late, why := g[id].keepReason(limit)
		if why != "" {
			out.keep(t.ID, why)
		}
		if late || why != "" {
			return p, true, nil
		}
	}
	return part{first: t, ids: ids, group: g}, false, nil
}

// hasRecords reports whether the transaction has records to erase.
func (t *Txn) hasRecords() bool {
	words := t.Prompt != nil && t.Prompt.record != "" && !t.Prompt.Erased
	words = words || slices.ContainsFunc(t.Commits, func(d CommitDecision) bool { return d.Decided != nil })
	return words || slices.ContainsFunc(t.Calls, (*Call).hasRevertRecords)
}

// keepReason returns why a transaction cannot be pruned: it ended too late, or it
// needs a person's attention.
func (t *Txn) keepReason(limit int64) (late bool, why string) {
	switch {
	case t.End == "":
		return false, "transaction " + t.ID + " has not ended"
	case t.State() == TxnRevertedPartial:
		return false, "transaction " + t.ID + " was not reverted completely"
	}
	for _, c := range t.Calls {
		if c.Phase == PhaseStarted || c.Phase == PhaseUnknown {
			return false, "unknown outcome of call " + c.Ref.Call
		}
	}
	return t.ended > limit, ""
}

func (p *PruneReport) keep(txn, why string) {
	if !slices.ContainsFunc(p.Kept, func(o StaleTxn) bool { return o.Why == why }) {
		p.Kept = append(p.Kept, StaleTxn{Txn: txn, Why: why})
	}
}
