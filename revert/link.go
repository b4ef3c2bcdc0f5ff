package revert

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// A link is a transaction that reverts or redoes another one, which has ended.
// Both streams name the other.

// unfinished finds the link of an attempt that did not end, and takes ownership
// of it. It returns an empty Txn if there is none. It ends a link that worked
// in other folders, as it is.
func (r *Reverter) unfinished(ctx context.Context, t *Txn) (rec Recorder, found *Txn, err error) {
	n := len(t.links)
	if n == 0 || t.seen.linkEnded { // which is final
		return rec, nil, nil
	}
	last, err := r.Load(ctx, t.links[n-1])
	if err != nil || last.End != "" {
		return rec, nil, err
	}
	if last.Owner != r.Journal.Owner() {
		if last, err = r.adopt(ctx, last); err != nil {
			return rec, nil, err
		}
	}
	rec = r.recorder(last).In(last.ID)
	if t.checkHere(last.ID) != nil { // its folders are not available; the next attempt there finds the interrupted steps
		return Recorder{}, nil, rec.Write(ctx, Write{Records: []CallRecord{{Body: &record.Committed{}}}, End: true})
	}
	return rec, last, nil
}

// beginLink begins a transaction that works on t; b says for which purpose.
func (r *Reverter) beginLink(ctx context.Context, t *Txn, b *record.Begun) (Recorder, error) {
	id := host.NewID(r.Host, "t_")
	rec := r.recorder(t).In(id)
	b.Owner, b.Roots = r.Journal.Owner(), t.Named
	// All in one batch: a link that its subject does not name could not be
	// found again. The claim excludes a second link by a process that has not
	// read this one. It needs no barrier of its own: the first plan of a call
	// has one, before any effect.
	w := Write{Records: []CallRecord{{Body: b}}, Take: journal.OwnerChange{To: journal.Ownership{Txn: id, Owner: b.Owner}}}
	for _, subject := range append([]string{t.ID}, b.Also...) {
		w.Records = append(w.Records, CallRecord{Txn: subject, Body: &record.RevertedBy{Txn: id}})
		//mutant:lease
		w.Claims = append(w.Claims, "txn:"+subject)
	}
	err := rec.Write(ctx, w)
	var held *journal.ClaimedError
	if errors.As(err, &held) && strings.HasPrefix(held.Resource, "txn:") {
		return rec, fmt.Errorf("%s works on transaction %s: %w", held.Holder, strings.TrimPrefix(held.Resource, "txn:"), ErrBusy)
	}
	return rec, err
}

// endLink completes what an interrupted link had begun, for all its subjects,
// and ends it. It returns one of them as it is then. The end has no barrier:
// every later step writes one after it, and a lost end is written again.
func (r *Reverter) endLink(ctx context.Context, rec Recorder, link, t *Txn) (*Txn, error) {
	for _, id := range link.subjects() {
		subject, err := r.Load(ctx, id)
		if err == nil {
			_, err = r.settle(ctx, rec, subject)
		}
		if err != nil {
			return t, err
		}
	}
	if err := rec.Write(ctx, Write{Records: []CallRecord{{Body: &record.Committed{}}}, End: true}); err != nil {
		return t, err
	}
	return r.latest(ctx, t)
}
