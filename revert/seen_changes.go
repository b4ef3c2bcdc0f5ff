package revert

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// seenChanges holds what the looks of one operation found in the journal, for
// its next look. Entries never move, and the query of a later look selects the
// same ones among those that were there. So only the rest is read, and the
// transactions are looked at again: their state can differ by now.
type seenChanges struct {
	found map[string]*foundChanges // by query
	txns  map[string]*Txn
}

// foundChanges are the headers that a query found up to a position, one of each
// call.
type foundChanges struct {
	upTo    int64
	headers []record.Header
	calls   map[string]bool
}

func newSeenChanges() *seenChanges {
	return &seenChanges{found: map[string]*foundChanges{}, txns: map[string]*Txn{}}
}

// find returns a header of each call with an entry that the query selects.
func (s *seenChanges) find(ctx context.Context, j journal.Journal, q journal.Query) ([]record.Header, error) {
	key := fmt.Sprintf("%d %q", q.After, q.About)
	f := s.found[key]
	if f == nil {
		f = &foundChanges{upTo: q.After, calls: map[string]bool{}}
	}
	newest := newestEntry(ctx, j) // before the read, which can find more
	q.After = f.upTo
	for e, err := range j.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		if !f.calls[e.Header.Call] {
			f.calls[e.Header.Call] = true
			f.headers = append(f.headers, e.Header)
		}
	}
	f.upTo = max(f.upTo, newest)
	s.found[key] = f
	return f.headers, nil
}

// newestEntry returns the position of the newest entry, or 0 if it cannot be
// read: then the next look reads everything again.
func newestEntry(ctx context.Context, j journal.Journal) int64 {
	for e, err := range j.Entries(ctx, journal.Query{Newest: true, Limit: 1}) {
		if err == nil {
			return e.Pos
		}
	}
	return 0
}

// txn returns a transaction as it is now.
func (s *seenChanges) txn(ctx context.Context, r *Reverter, id string) (t *Txn, err error) {
	if was := s.txns[id]; was != nil {
		t, err = r.latest(ctx, was)
	} else {
		t, err = r.Load(ctx, id)
	}
	s.txns[id] = t // nil after an error
	return t, err
}
