package simjournal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

var errClosed = errors.New("journal is closed")

// opening is one opening of a Store.
type opening struct {
	store *Store
	owner string
}

// do runs f on the store unless the context or this opening has ended.
func (j *opening) do(ctx context.Context, f func(*Store) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	if !j.store.alive[j.owner] {
		return errClosed
	}
	return f(j.store)
}

func (j *opening) Owner() string { return j.owner }

func (j *opening) Alive(ctx context.Context, owner string) (alive bool, err error) {
	err = j.do(ctx, func(s *Store) error {
		alive = s.alive[owner] && !s.lost[owner]
		return nil
	})
	return alive, err
}

// Append writes the batch and then, if it has a barrier, makes it durable. The
// power can fail at both points.
func (j *opening) Append(ctx context.Context, b journal.Batch) error {
	st, err := own(b)
	if err != nil {
		return err
	}
	written := 0
	err = j.do(ctx, func(s *Store) error {
		if err := s.allows(b); err != nil {
			return err
		}
		s.steps = append(s.steps, st)
		s.apply(st)
		written = len(s.steps)
		return nil
	})
	if err != nil {
		return err
	}
	j.store.notify("append")
	if !b.Durable {
		return nil
	}
	j.store.mu.Lock()
	j.store.durable = max(j.store.durable, written)
	j.store.mu.Unlock()
	j.store.notify("barrier")
	return nil
}

// own returns a batch that shares no memory with the caller, with checked
// entries.
func own(b journal.Batch) (step, error) {
	if err := b.Check(); err != nil {
		return step{}, err
	}
	b.Entries = slices.Clone(b.Entries)
	for i, e := range b.Entries {
		e, err := clone(e).Kept()
		if err != nil {
			return step{}, err
		}
		b.Entries[i] = e
	}
	b.Claims, b.Erase, b.Blobs = slices.Clone(b.Claims), slices.Clone(b.Erase), slices.Clone(b.Blobs)
	for i, blob := range b.Blobs {
		if data, inline := blob.Inline().Get(); inline {
			b.Blobs[i] = journal.InlineBlob(blob.Ref().Digest, append([]byte{}, data...))
		}
	}
	return step{batch: b}, nil
}

// allows checks everything before anything changes.
func (s *Store) allows(b journal.Batch) error {
	if to := b.Take.To; to.Txn != "" {
		now, known := s.state.txns[to.Txn]
		switch {
		case b.Take.From == "" && known:
			return fmt.Errorf("begin %s: it exists: %w", to.Txn, journal.ErrNotOwner)
		case b.Take.From != "" && (!known || now.ended || now.owner != b.Take.From):
			return fmt.Errorf("take %s from %s: %w", to.Txn, b.Take.From, journal.ErrNotOwner)
		}
	}
	if err := s.passes(b); err != nil {
		return err
	}
	for _, blob := range b.Blobs {
		if blob.Inline().IsPresent() {
			continue
		}
		if data, ok := s.content(blob.Ref().Digest); !ok || int64(len(data)) != blob.Ref().Size {
			return fmt.Errorf("blob %s: %w", blob.Ref().Digest, journal.ErrNotFound)
		}
	}
	return nil
}

// passes checks fence and claims as they are after the batch's Take.
func (s *Store) passes(b journal.Batch) error {
	fence := b.Fence
	if fence.Txn == "" {
		return nil
	}
	now, known := s.state.txns[fence.Txn]
	if b.Take.To.Txn == fence.Txn {
		now, known = txn{owner: b.Take.To.Owner}, true
	}
	if !known || now.ended || now.owner != fence.Owner {
		return fmt.Errorf("transaction %s, owner %s: %w", fence.Txn, fence.Owner, journal.ErrNotOwner)
	}
	for _, resource := range b.Claims {
		if holder, held := s.state.claims[resource]; held && holder != fence.Txn {
			return &journal.ClaimedError{Resource: resource, Holder: holder}
		}
	}
	return nil
}

func (j *opening) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		var all []record.Entry
		if err := j.do(ctx, func(s *Store) error { all = s.state.entries; return nil }); err != nil {
			yield(record.Entry{}, err)
			return
		}
		found := 0
		for i := range all {
			if q.Newest {
				i = len(all) - 1 - i
			}
			if !q.Selects(all[i]) {
				continue
			}
			if ctx.Err() != nil {
				yield(record.Entry{}, context.Cause(ctx))
				return
			}
			if found++; !yield(clone(all[i]), nil) || found == q.Limit {
				return
			}
		}
	}
}

func (j *opening) Head(ctx context.Context) (h journal.Head, err error) {
	err = j.do(ctx, func(s *Store) error {
		h = s.grown().tree.Head()
		return nil
	})
	return h, err
}

func (j *opening) Hashes(ctx context.Context, indexes []int64) (found []tlog.Hash, err error) {
	err = j.do(ctx, func(s *Store) error {
		all := s.grown().hashes
		for _, i := range indexes {
			if i < 0 || i >= int64(len(all)) {
				return fmt.Errorf("hash %d of the tree: %w", i, journal.ErrNotFound)
			}
			found = append(found, all[i])
		}
		return nil
	})
	return found, err
}

func (j *opening) Unfinished(ctx context.Context) (open []journal.Ownership, err error) {
	err = j.do(ctx, func(s *Store) error {
		for _, id := range s.state.open {
			open = append(open, journal.Ownership{Txn: id, Owner: s.state.txns[id].owner})
		}
		return nil
	})
	return open, err
}

func (j *opening) StoreContent(ctx context.Context, r io.Reader) (journal.Blob, error) {
	var large bytes.Buffer
	blob, err := journal.ReadContent(ctx, r, func() (io.Writer, error) { return &large, nil })
	if err != nil {
		return journal.Blob{}, err
	}
	inline := blob.Inline().IsPresent()
	err = j.do(ctx, func(s *Store) error {
		if !inline {
			s.large[blob.Ref().Digest] = large.Bytes()
		}
		return nil
	})
	if err != nil {
		return journal.Blob{}, err
	}
	if !inline {
		j.store.notify("keep")
	}
	return blob, nil
}

func (j *opening) OpenContent(ctx context.Context, ref effect.BlobRef) (io.ReadCloser, error) {
	if err := ref.Check(); err != nil {
		return nil, err
	}
	var data []byte
	err := j.do(ctx, func(s *Store) error {
		var ok bool
		if data, ok = s.content(ref.Digest); !ok {
			return fmt.Errorf("blob %s: %w", ref.Digest, journal.ErrNotFound)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return journal.CheckedContent(ref, io.NopCloser(bytes.NewReader(data))), nil
}

// CollectGarbage deletes content that no entry names. It deletes large content
// that another opening may be about to name only if gone names it.
func (j *opening) CollectGarbage(ctx context.Context, gone []effect.BlobRef) (c journal.GCReport, err error) {
	named := map[string]bool{}
	if err := journal.Blobs(ctx, j, 0, func(_ int64, ref effect.BlobRef) error { named[ref.Digest] = true; return nil }); err != nil {
		return c, err
	}
	err = j.do(ctx, func(s *Store) error {
		var st step
		for digest, data := range s.state.blobs {
			if !named[digest] {
				st.drop = append(st.drop, digest)
				c.Blobs, c.Bytes = c.Blobs+1, c.Bytes+int64(len(data))
				continue
			}
			c.Size += int64(len(data))
		}
		for digest, data := range s.large {
			ref := effect.BlobRef{Digest: digest, Size: int64(len(data))}
			if named[digest] || (len(s.alive) > 1 && !slices.Contains(gone, ref)) {
				c.Size += ref.Size
				continue
			}
			delete(s.large, digest)
			c.Blobs, c.Bytes = c.Blobs+1, c.Bytes+ref.Size
		}
		s.steps = append(s.steps, st)
		s.apply(st)
		s.durable = len(s.steps)
		for _, e := range s.state.entries {
			c.Size += int64(len(e.Head) + len(e.Body))
		}
		c.Freed = c.Bytes
		return nil
	})
	if err == nil {
		j.store.notify("collect")
	}
	return c, err
}

func (j *opening) Close() error {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	delete(j.store.alive, j.owner)
	return nil
}
