package sqlite

import (
	"fmt"

	"github.com/remit-dev/remit/revert/journal"
)

// mayStore refuses a batch that contradicts the content of the journal.
func (w *writer) mayStore(b journal.Batch) (refused, err error) {
	for _, look := range []func(journal.Batch) (refused, err error){w.mayTake, w.mayPass, w.mayClaim, w.haveBlobs, w.mayGrow} {
		if refused, err = look(b); refused != nil || err != nil {
			return refused, err
		}
	}
	return nil, nil
}

func (w *writer) mayTake(b journal.Batch) (refused, err error) {
	txn, owner := b.Take.To.Txn, ""
	if txn == "" || passes(b) { // take finds out
		return nil, nil
	}
	if b.Take.From == "" {
		exists, err := w.find(stmtExists, &owner, txn)
		if exists {
			refused = errExists(txn)
		}
		return refused, err
	}
	unfinished, err := w.find(stmtHolder, &owner, txn)
	if !unfinished || owner != b.Take.From {
		refused = fmt.Errorf("take %s from %s: %w", txn, b.Take.From, journal.ErrNotOwner)
	}
	return refused, err
}

func errExists(txn string) error {
	return fmt.Errorf("begin %s: it exists: %w", txn, journal.ErrNotOwner)
}

// mayPass checks the fence with the ownership after the batch's Take.
func (w *writer) mayPass(b journal.Batch) (refused, err error) {
	//mutant:lease
	if b.Fence.Txn == "" {
		return nil, nil
	}
	owner, unfinished := b.Take.To.Owner, true
	//mutant:lease
	if b.Take.To.Txn != b.Fence.Txn {
		unfinished, err = w.find(stmtHolder, &owner, b.Fence.Txn)
	}
	//mutant:lease
	if !unfinished || owner != b.Fence.Owner {
		refused = notOwner(b.Fence)
	}
	return refused, err
}

func (w *writer) mayClaim(b journal.Batch) (refused, err error) {
	for _, resource := range b.Claims {
		var holder string
		held, err := w.find(stmtClaimant, &holder, resource)
		if err != nil {
			return nil, err
		}
		//mutant:lease
		if held && holder != b.Fence.Txn {
			return &journal.ClaimedError{Resource: resource, Holder: holder}, nil
		}
	}
	return nil, nil
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
