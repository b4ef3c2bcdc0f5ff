package sqlite

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// namedBlobs holds the digests that entries name, as far as this opening has read
// the entries. It is not part of the stored journal. Each digest is looked up
// in the journal before it counts.
type namedBlobs struct {
	lock   chan struct{} // holds one token while CollectGarbage uses the fields below
	seen   *digestSet    // nil: no entries were read yet
	upTo   int64         // position up to which entries were read
	closed bool
}

// take acquires the set for the caller.
func (n *namedBlobs) take(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case n.lock <- struct{}{}:
	}
	if n.closed {
		<-n.lock
		return errClosed
	}
	if n.seen != nil {
		return nil
	}
	seen, err := newScratch(context.WithoutCancel(ctx))
	if err != nil {
		<-n.lock
		return explain(err)
	}
	n.seen, n.upTo = seen, 0
	return nil
}

func (n *namedBlobs) leave() { <-n.lock }

// close acquires the set and never releases it.
func (n *namedBlobs) close() error {
	if n.lock == nil {
		return nil
	}
	n.lock <- struct{}{}
	defer n.leave()
	n.closed = true
	if n.seen == nil {
		return nil
	}
	return n.seen.close()
}

// read reads the entries that were appended since the last read.
func (n *namedBlobs) read(ctx context.Context, j *Journal) error {
	size, err := j.size(ctx)
	if err != nil {
		return j.causeOf(ctx, err)
	}
	err = journal.Blobs(ctx, j, n.upTo, func(pos int64, ref effect.BlobRef) error { return n.seen.add(ctx, ref.Digest, pos) })
	if err == nil {
		n.upTo = size
	}
	return err
}

// has reports whether an entry names a digest and was not erased meanwhile.
func (n *namedBlobs) has(ctx context.Context, j *Journal, digest string) (bool, error) {
	for {
		pos, err := n.seen.newest(ctx, digest)
		if err != nil || pos == 0 {
			return false, explained(err)
		}
		b, err := j.batchOf(ctx, pos)
		if err != nil {
			return false, j.causeOf(ctx, err)
		}
		if b != nil && pos <= b.last() && len(b.entries[pos-b.key.pos()].erased) == 0 {
			return true, nil
		}
		if err := n.seen.forget(ctx, digest, pos); err != nil {
			return false, explained(err)
		}
	}
}

// causeOrNil is because for an error that may be nil.
func (j *Journal) causeOrNil(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, errClosed) {
		return err
	}
	return j.causeOf(ctx, err)
}
