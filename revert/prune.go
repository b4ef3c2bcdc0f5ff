package revert

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/kind"
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
	Keep time.Duration // transactions that ended so long ago, or longer
	Last int           // but never the newest so many that ended
	Dry  bool          // only say what would go
}

// Pruned is what Prune came to.
type Pruned struct {
	Txns    int    `json:"txns"`              // that can no longer be taken back or brought back
	Calls   int    `json:"calls"`             // whose records were erased, takings back among them
	Kept    []Old  `json:"kept"`              // past retention, and kept all the same
	Content int64  `json:"content"`           // bytes of content that they named, some of which others may name too
	Blobs   int64  `json:"blobs"`             // contents that were dropped
	Freed   int64  `json:"freed"`             // bytes by which the store is smaller
	Size    int64  `json:"size"`              // of everything that is left; 0: it was only looked
	Waiting string `json:"waiting,omitempty"` // see Collected
}

// Old is a transaction that is past retention and needs somebody to look at it.
type Old struct {
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
func (r *Reverter) Prune(ctx context.Context, keep Retention) (Pruned, error) {
	out := Pruned{Kept: []Old{}}
	limit, err := r.past(ctx, keep)
	if err != nil {
		return out, err
	}
	for e, err := range r.Journal.Entries(ctx, journal.Query{Kinds: []kind.Kind{kind.Begun}}) {
		if err != nil {
			return out, err
		}
		if e.Pos > limit {
			break
		}
		if err := r.pruneTxn(ctx, e.Header.Txn, limit, keep.Dry, &out); err != nil {
			return out, err
		}
	}
	if keep.Dry {
		return out, nil
	}
	if err := r.sweep(ctx, limit); err != nil {
		return out, err
	}
	c, err := r.collect(ctx, nil)
	out.Size, out.Blobs, out.Freed, out.Waiting = c.Size, c.Blobs, c.Freed, c.Waiting
	return out, err
}

// past finds the newest entry that is past retention.
func (r *Reverter) past(ctx context.Context, keep Retention) (int64, error) {
	limit := int64(math.MaxInt64)
	if keep.Last > 0 {
		limit = 0
		n := 0
		for e, err := range r.Journal.Entries(ctx, journal.Query{Kinds: []kind.Kind{kind.Committed, kind.Aborted}, Newest: true, Limit: keep.Last}) {
			if err != nil {
				return 0, err
			}
			if n++; n == keep.Last {
				limit = e.Pos - 1
			}
		}
	}
	var age time.Duration
	var later time.Time
	for e, err := range r.Journal.Entries(ctx, journal.Query{Newest: true}) {
		if err != nil {
			return 0, err
		}
		if !later.IsZero() {
			age += min(max(later.Sub(e.Header.At), 0), 24*time.Hour)
		}
		if later = e.Header.At; age >= keep.Keep {
			return min(limit, e.Pos), nil
		}
	}
	return 0, nil
}

// pruneTxn prunes a transaction with those that are linked with it, if all may go.
func (r *Reverter) pruneTxn(ctx context.Context, id string, limit int64, dry bool, out *Pruned) error {
	t, err := r.Load(ctx, id)
	if err != nil || t.Undoes+t.Redoes != "" || !t.hasRecords() {
		return err
	}
	g, err := r.grouped(ctx, t)
	if err != nil {
		return err
	}
	ids := slices.Sorted(maps.Keys(g))
	for _, id := range ids { // several that one undo links are looked at once
		if o := g[id]; o.Undoes+o.Redoes == "" && o.hasRecords() && (o.Began.Before(t.Began) || (o.Began.Equal(t.Began) && o.ID < t.ID)) {
			return nil
		}
	}
	for _, id := range ids {
		late, why := g[id].mustStay(limit)
		if late {
			return nil
		}
		if why != "" {
			out.keep(t.ID, why)
			return nil
		}
	}
	e := &erasing{cause: eraseRetention}
	for _, id := range ids {
		for _, c := range g[id].Calls {
			if !c.needed() {
				continue
			}
			e.addCall(g[id], c)
		}
		if g[id].hasRecords() {
			out.Txns++
		}
	}
	out.Calls += len(e.calls)
	for _, ref := range e.refs {
		out.Content += ref.Size
	}
	if dry {
		return nil
	}
	return r.writeErased(ctx, e, t.Session, ids, g)
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
	case t.State() == RevertedPartial:
		return false, "transaction " + t.ID + " was not wholly taken back"
	}
	for _, c := range t.Calls {
		if c.Phase == PhaseStarted || c.Phase == PhaseUnknown {
			return false, "nobody knows what became of call " + c.Ref.Call
		}
	}
	return t.ended > limit, ""
}

func (p *Pruned) keep(txn, why string) {
	if !slices.ContainsFunc(p.Kept, func(o Old) bool { return o.Why == why }) {
		p.Kept = append(p.Kept, Old{Txn: txn, Why: why})
	}
}
