package journal

import (
	"errors"
	"fmt"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/record"
)

// Check returns what is wrong with a batch in itself, independent of the
// journal. Every Journal refuses such a batch before it stores anything, so
// that other batches in the same durable step do not fail with it.
func (b Batch) Check() error {
	//mutant:lease
	if b.Fence.Txn == "" && (len(b.Claims) > 0 || b.End) {
		return errors.New("batch: claims and an end need a fence")
	}
	for _, call := range b.Erase {
		if call == "" {
			return errors.New("batch: a call to erase has no id")
		}
	}
	if b.Take.To.Txn != "" && b.Take.To.Owner == "" {
		return fmt.Errorf("batch: transaction %s gets no new owner", b.Take.To.Txn)
	}
	for i, e := range b.Entries {
		if err := whole(e); err != nil {
			return fmt.Errorf("batch: entry %d of %d: %w", i+1, len(b.Entries), err)
		}
	}
	for _, blob := range b.Blobs {
		if err := blob.check(); err != nil {
			return fmt.Errorf("batch: %w", err)
		}
	}
	return nil
}

// whole reports whether every part of an entry is present. Readers check
// whether the parts fit each other.
func whole(e record.Entry) error {
	if len(e.Head) == 0 || len(e.Salt) != record.SaltSize || len(e.Body) == 0 || e.Leaf == "" {
		return errors.New("it is not sealed")
	}
	return nil
}

// check returns an error if a blob cannot have the content that its reference
// names.
func (b Blob) check() error {
	if err := b.ref.Check(); err != nil {
		return err
	}
	data, inline := b.Inline().Get()
	if !inline {
		return nil
	}
	if len(data) > InlineMax {
		return fmt.Errorf("blob %s: %d bytes inline, must be at most %d", b.ref.Digest, len(data), InlineMax)
	}
	if string(canon.SumBytes(data)) != b.ref.Digest {
		return fmt.Errorf("blob %s: the bytes beside it have another digest", b.ref.Digest)
	}
	return nil
}
