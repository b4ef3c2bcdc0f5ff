package sqlite

import (
	"fmt"

	"github.com/remit-dev/remit/revert/journal"
)

// mayStore refuses a batch that contradicts the content of the journal.
func (w *writer) mayStore(b journal.Batch) (refused, err error) {
	for _, look := range []func(journal.Batch) (refused, err error){w.mayTake, w.mayPass, w.mayClaim, w.haveBlobs, w.mayErase, w.mayGrow} {
		if refused, err = look(b); refused != nil || err != nil {
			return refused, err
		}
	}
	return nil, nil
}

func (w *writer) mayTake(b journal.Batch) (refused, err error) {
	id := b.Take.To.Txn
	if id == "" {
		return nil, nil
	}
	t, err := w.txn(id)
	switch {
	case err != nil:
	case b.Take.From == "" && t.exists:
		refused = fmt.Errorf("begin %s: it exists: %w", id, journal.ErrNotOwner)
	case b.Take.From != "" && (!t.open() || t.owner != b.Take.From):
		refused = fmt.Errorf("take %s from %s: %w", id, b.Take.From, journal.ErrNotOwner)
	}
	return refused, err
}

// mayPass checks the fence with the ownership after the batch's Take.
func (w *writer) mayPass(b journal.Batch) (refused, err error) {
	//mutant:lease
	if b.Fence.Txn == "" {
		return nil, nil
	}
	t := txnState{exists: true, owner: b.Take.To.Owner}
	//mutant:lease
	if b.Take.To.Txn != b.Fence.Txn {
		t, err = w.txn(b.Fence.Txn)
	}
	//mutant:lease
	if !t.open() || t.owner != b.Fence.Owner {
		refused = notOwner(b.Fence)
	}
	return refused, err
}

// txnState is what the journal knows of a transaction. The zero txnState is
// that of one that does not exist.
type txnState struct {
	exists, ended bool
	owner         string
}

func (t txnState) open() bool { return t.exists && !t.ended }

// txn returns the state of a transaction. The newer batches count before the
// table.
func (w *writer) txn(id string) (t txnState, err error) {
	newer := w.later.ledger.txns[id]
	if newer != nil && newer.owner != "" {
		return txnState{exists: true, ended: newer.ended, owner: newer.owner}, nil
	}
	if t.owner, t.exists = w.open[id]; !t.exists {
		if t.exists, err = w.findAll(stmtTxn, []any{id}, &t.owner, &t.ended); err != nil {
			return t, err
		}
		if t.open() {
			w.keepOpen(id, t.owner)
		}
	}
	t.ended = t.ended || newer != nil && newer.ended
	return t, nil
}

// keepOpen remembers what the table says of an open transaction.
func (w *writer) keepOpen(id, owner string) {
	if w.open == nil || len(w.open) >= maxOpen {
		w.open = map[string]string{}
	}
	w.open[id] = owner
}

// maxOpen bounds the memory for open transactions.
const maxOpen = 4096

func (w *writer) mayClaim(b journal.Batch) (refused, err error) {
	for _, resource := range b.Claims {
		holder, err := w.holder(resource)
		if err != nil {
			return nil, err
		}
		//mutant:lease
		if holder != "" && holder != b.Fence.Txn {
			return &journal.ClaimedError{Resource: resource, Holder: holder}, nil
		}
	}
	return nil, nil
}

// holder returns the transaction that holds a resource. The newer batches count
// before the table: they may have ended the one that the table names.
func (w *writer) holder(resource string) (txn string, err error) {
	if txn := w.later.ledger.claims[resource]; txn != "" {
		return txn, nil
	}
	if _, err = w.find(stmtHolder, &txn, resource); err != nil {
		return "", err
	}
	//mutant:check
	if t := w.later.ledger.txns[txn]; t != nil && t.ended {
		return "", nil
	}
	return txn, nil
}

// haveBlobs checks that blobs exist that are not part of the batch.
func (w *writer) haveBlobs(b journal.Batch) (refused, err error) {
	if missing := haveFiles(w.dir, b.Blobs); missing != nil {
		return missing, nil
	}
	for _, blob := range b.Blobs {
		ref := blob.Ref()
		if blob.Inline().IsPresent() || ref.Size > journal.InlineMax {
			continue
		}
		var size int64
		found, err := w.find(stmtBlobSize, &size, ref.Digest)
		if err != nil {
			return nil, err
		}
		if !found || size != ref.Size {
			return missing(ref), nil
		}
	}
	return nil, nil
}
