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

// Retention says how long what is needed to take transactions back is kept. It is
// counted in journal time: the time between one record and the next, where a gap of
// more than a day counts as a day, and a step back of the clock as nothing. So a
// clock that jumps makes nothing old, and a journal that nobody writes to keeps
// what it has.
type Retention struct {
	MaxAge   time.Duration // transactions that ended so long ago, or longer
	KeepLast int           // but never the newest so many that ended
	DryRun   bool          // only say what would go
}

// PruneReport is what Prune came to.
type PruneReport struct {
	Txns    int        `json:"txns"`              // that can no longer be taken back or brought back
	Calls   int        `json:"calls"`             // whose records were erased, takings back among them
	Kept    []StaleTxn `json:"kept"`              // past retention, and kept all the same
	Content int64      `json:"content"`           // bytes of content that they named, some of which others may name too
	Blobs   int64      `json:"blobs"`             // contents that were dropped
	Freed   int64      `json:"freed"`             // bytes by which the store is smaller
	Size    int64      `json:"size"`              // of everything that is left; 0: it was only looked
	Waiting string     `json:"waiting,omitempty"` // see Collected
}

// StaleTxn is a transaction that is past retention and needs somebody to look at it.
type StaleTxn struct {
	Txn string `json:"txn"`
	Why string `json:"why"`
}

// Prune drops what is needed to take transactions back that are past retention:
// all that their calls' records hold, and content that nothing else names. What
// stays says which tools were called, how that ended and what they changed. It
// drops nothing of a transaction that has not ended, that something is left of
// although it was taken back, or that has a call of unknown outcome; nor of one
// that is linked with such a one. Each transaction goes in one step with those
// that took it back. A prune whose process died is finished by the next.
func (r *Reverter) Prune(ctx context.Context, keep Retention) (PruneReport, error) {
	return r.Retain(keep).Run(ctx)
}

// mayGo loads a transaction with those that are linked with it. It returns them if
// all of them may go, and reports whether they may go later; out is told why.
func (r *Reverter) mayGo(ctx context.Context, id string, limit int64, out *PruneReport) (p part, waits bool, err error) {
	t, err := r.Load(ctx, id)
	switch {
	case err != nil || t.Undoes+t.Redoes != "":
		return p, false, err
	case !t.hasRecords():
		return p, t.End == "", nil // an open one may get some
	}
	g, err := r.grouped(ctx, t)
	if err != nil {
		return p, false, err
	}
	ids := slices.Sorted(maps.Keys(g))
	for _, id := range ids { // several that one undo links go with the first of them
		if o := g[id]; o.Undoes+o.Redoes == "" && o.hasRecords() && (o.Began.Before(t.Began) || (o.Began.Equal(t.Began) && o.ID < t.ID)) {
			return p, true, nil
		}
	}
	for _, id := range ids {
		late, why := g[id].mustStay(limit)
		if why != "" {
			out.keep(t.ID, why)
		}
		if late || why != "" {
			return p, true, nil
		}
	}
	return part{first: t, ids: ids, group: g}, false, nil
}

// hasRecords reports whether there is anything to erase.
func (t *Txn) hasRecords() bool {
	return slices.ContainsFunc(t.Calls, (*Call).needed)
}

// mustStay says why nothing of a transaction may go: it ended too late, or for a
// reason that somebody should know of.
func (t *Txn) mustStay(limit int64) (late bool, why string) {
	switch {
	case t.End == "":
		return false, "transaction " + t.ID + " has not ended"
	case t.State() == TxnRevertedPartial:
		return false, "transaction " + t.ID + " was not wholly taken back"
	}
	for _, c := range t.Calls {
		if c.Phase == PhaseStarted || c.Phase == PhaseUnknown {
			return false, "nobody knows what became of call " + c.Ref.Call
		}
	}
	return t.ended > limit, ""
}

func (p *PruneReport) keep(txn, why string) {
	if !slices.ContainsFunc(p.Kept, func(o StaleTxn) bool { return o.Why == why }) {
		p.Kept = append(p.Kept, StaleTxn{Txn: txn, Why: why})
	}
}
