package revert

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Load reads one transaction, with the effects of revert transactions on its
// calls in the recorded folders of its session.
func Load(ctx context.Context, j journal.Journal, id string) (*Txn, error) {
	return loadWhole(ctx, j, id, nil)
}

func loadWhole(ctx context.Context, j journal.Journal, id string, named []record.Root) (*Txn, error) {
	if id == "" {
		return nil, fmt.Errorf("the empty transaction id: %w", journal.ErrNotFound)
	}
	for {
		before, err := newestErasure(ctx, j)
		if err != nil {
			return nil, err
		}
		t, torn, err := load(ctx, j, id, named)
		if torn {
			// A read can return an erased record as it was before or after the
			// erasure. It is consistent if nothing was erased during the read.
			after, failed := newestErasure(ctx, j)
			if failed != nil {
				return nil, failed
			}
			if after != before {
				continue
			}
		}
		if t != nil {
			t.seen.erasure = before
		}
		return t, err
	}
}

// newestErasure returns the position of the newest record of an erasure, or 0
// if there is none.
func newestErasure(ctx context.Context, j journal.Journal) (pos int64, err error) {
	for e, err := range j.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindErased}, Newest: true, Limit: 1}) {
		return e.Pos, err
	}
	return 0, nil
}

// newTxn returns a transaction of which nothing was read yet.
func newTxn(id string, named []record.Root) *Txn {
	return &Txn{ID: id, Named: named, byID: map[string]*Call{}, reversals: map[string]*Reversal{}, gone: map[string]int64{}, erasedCalls: map[string]bool{}}
}

// load reads a transaction once, and reports whether something of it is erased.
func load(ctx context.Context, j journal.Journal, id string, named []record.Root) (_ *Txn, erased bool, err error) {
	t := newTxn(id, named)
	if err := t.read(ctx, j, journal.Query{Txn: id}, &t.seen.own, t.apply); err != nil {
		return nil, t.erased, err
	}
	if t.Owner == "" {
		return nil, false, fmt.Errorf("transaction %s: %w", id, journal.ErrNotFound)
	}
	for call, pos := range t.gone {
		return nil, true, fmt.Errorf("%w: entry %d: the body of a record of call %s is gone, and no record says who erased it", record.ErrDamaged, pos, call)
	}
	if err := t.readLinks(ctx, j); err != nil {
		return nil, t.erased, err
	}
	return t, t.erased, nil
}

// LoadCall reads one call and its transaction.
func LoadCall(ctx context.Context, j journal.Journal, id string) (*Txn, *Call, error) {
	if id == "" {
		return nil, nil, fmt.Errorf("the empty call id: %w", journal.ErrNotFound)
	}
	for e, err := range j.Entries(ctx, journal.Query{Call: id}) {
		if err != nil {
			return nil, nil, err
		}
		if e.Header.Txn == "" {
			continue // labels from a result belong to the session
		}
		t, err := Load(ctx, j, e.Header.Txn)
		if err != nil {
			return nil, nil, err
		}
		if c, ok := t.Call(id); ok {
			return t, c, nil
		}
	}
	return nil, nil, fmt.Errorf("call %s: %w", id, journal.ErrNotFound)
}

// read folds the records that q selects, and sets last to the position of the
// last one.
func (t *Txn) read(ctx context.Context, j journal.Journal, q journal.Query, last *int64, apply func(record.Entry, record.Record) error) error {
	for e, err := range j.Entries(ctx, q) {
		if err != nil {
			return err
		}
		*last = e.Pos
		if e.Erased != "" {
			t.erased = true
			if err := t.applyGone(e); err != nil {
				return fmt.Errorf("%w: entry %d: %w", record.ErrDamaged, e.Pos, err)
			}
			continue
		}
		if err := t.applyEntry(e, apply); err != nil {
			return err
		}
	}
	return nil
}

func (t *Txn) applyEntry(e record.Entry, apply func(record.Entry, record.Record) error) error {
	r, err := record.Unseal(e)
	if err != nil {
		return err
	}
	if err := apply(e, r); err != nil {
		return fmt.Errorf("%w: entry %d: %w", record.ErrDamaged, e.Pos, err)
	}
	return nil
}

// seen says how far the streams of a transaction were read, so that the next
// look at it reads only what was appended since.
type seen struct {
	own       int64 // position of the last record of its own stream
	links     int   // number of links whose streams were read
	link      int64 // position of the last record of the newest of them
	linkEnded bool  // the newest of them has ended
	torn      bool  // a link began before an earlier one had ended: only a whole read is exact
	erasure   int64 // position of the newest erasure before the read
}

// errReadAgain says that new records do not only add to what was read before.
var errReadAgain = errors.New("read the transaction again")

// readLinks reads the links that were not read yet.
func (t *Txn) readLinks(ctx context.Context, j journal.Journal) error {
	for t.seen.links < len(t.links) {
		t.seen.torn = t.seen.torn || t.seen.links > 0 && !t.seen.linkEnded
		link := t.links[t.seen.links]
		t.seen.links, t.seen.link, t.seen.linkEnded = t.seen.links+1, 0, false
		if err := t.applyLink(ctx, j, link); err != nil {
			return err
		}
	}
	return nil
}

// latest returns the transaction as the journal has it now. Other processes can
// have appended to it since it was read, so each step that relies on its state
// looks again. A look costs what is new: the journal only grows, so the records
// up to the last position are those that were folded, and the state is the same
// as after a whole read. It changes t in place; after an error t is invalid.
func (r *Reverter) latest(ctx context.Context, t *Txn) (*Txn, error) {
	err := errReadAgain
	if named, failed := r.named(ctx, t.Session); failed != nil {
		return nil, failed
	} else if len(named) == 0 && t.recordedFolders() {
		err = t.catchUp(ctx, r.Journal)
	}
	switch {
	case errors.Is(err, errReadAgain) && t.part != nil:
		return r.loadCalls(ctx, t.ID, t.part.named)
	case errors.Is(err, errReadAgain):
		return r.Load(ctx, t.ID)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// recordedFolders reports whether the transaction is read for the recorded
// folders of its session. The names in a link are those of the link itself.
func (t *Txn) recordedFolders() bool { return len(t.Named) == 0 || t.Reverts+t.Redoes != "" }

// catchUp folds what was appended since t was read. It returns errReadAgain if
// that is not the same as a whole read:
//   - An erasure has destroyed records, perhaps folded ones.
//   - A whole read folds the own stream before those of the links. Beside the
//     names of links, a record of the own stream that comes after a link was
//     folded would be folded too late.
//   - A part of a transaction lacks calls that new records concern.
//   - An older link, whose stream is not read again, had not ended. An ended one
//     gets no more records but those of an erasure.
func (t *Txn) catchUp(ctx context.Context, j journal.Journal) error {
	newest, err := newestErasure(ctx, j)
	if err != nil {
		return err
	}
	if newest != t.seen.erasure || t.seen.torn {
		return errReadAgain
	}
	folded, had := t.seen.links, t.erased
	t.erased = false
	err = t.read(ctx, j, journal.Query{Txn: t.ID, After: t.seen.own}, &t.seen.own, func(e record.Entry, r record.Record) error {
		if (folded > 0 || t.part != nil) && r.Kind != record.KindRevertedBy {
			return errReadAgain
		}
		return t.apply(e, r)
	})
	if err == nil && folded > 0 {
		err = t.readLink(ctx, j, t.links[folded-1])
	}
	if err == nil {
		err = t.readLinks(ctx, j)
	}
	if err == nil && (t.erased || t.seen.torn || t.part != nil && len(t.incomplete()) > 0) {
		return errReadAgain
	}
	t.erased = had
	return err
}
