package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

var errClosed = errors.New("journal is closed")

// Memory returns a journal that lives as long as the process: nothing survives
// a crash, and durable means stored. Use it in tests, and in programs that
// revert calls only while they run.
func Memory() Journal { return newMemoryStore().open() }

// SharedMemory returns a function that opens one store in memory. Several
// owners can open it, in sequence or at once, as processes open a durable
// journal.
func SharedMemory() (open func() Journal) {
	store := newMemoryStore()
	return func() Journal { return store.open() }
}

// memoryStore is shared by the openings of one memory journal. Its owners are
// numbered, not random, so that a run can be repeated exactly.
type memoryStore struct {
	mu      sync.Mutex // guards the fields below; never held across a wait
	opened  int
	alive   map[string]bool
	batches [][]record.Entry // append-only; a batch never changes in place
	count   int64            // number of entries
	tree    Tree             // of the first entries; grow adds the others
	grown   int              // number of batches in the tree
	hashes  []tlog.Hash      // of the tree, by tlog index
	blobs   map[string][]byte
	txns    map[string]*memoryTxn
	order   []*memoryTxn // oldest first
	claims  map[string]string
}

type memoryTxn struct {
	Ownership
	ended bool
}

func newMemoryStore() *memoryStore {
	return &memoryStore{
		alive:  map[string]bool{},
		blobs:  map[string][]byte{},
		txns:   map[string]*memoryTxn{},
		claims: map[string]string{},
	}
}

func (s *memoryStore) open() *memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	owner := fmt.Sprintf("memory-%d", s.opened)
	s.alive[owner] = true
	return &memory{store: s, owner: owner}
}

// memory is one opening.
type memory struct {
	store *memoryStore
	owner string
}

// do runs f on the store unless the context or this opening has ended.
func (m *memory) do(ctx context.Context, f func(*memoryStore) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	if !m.store.alive[m.owner] {
		return errClosed
	}
	return f(m.store)
}

func (m *memory) Owner() string { return m.owner }

func (m *memory) Alive(ctx context.Context, owner string) (alive bool, err error) {
	err = m.do(ctx, func(s *memoryStore) error {
		alive = s.alive[owner]
		return nil
	})
	return alive, err
}

func (m *memory) Append(ctx context.Context, b Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	return m.do(ctx, func(s *memoryStore) error { return s.append(b) })
}

// append checks everything before it changes anything: a refused batch leaves
// no trace.
func (s *memoryStore) append(b Batch) error {
	if err := s.mayTake(b.Take); err != nil {
		return err
	}
	if err := s.mayPass(b); err != nil {
		return err
	}
	if err := s.haveBlobs(b.Blobs); err != nil {
		return err
	}
	s.take(b.Take)
	s.erase(b.Erase)
	for _, blob := range b.Blobs {
		if data, inline := blob.Inline().Get(); inline {
			s.blobs[blob.ref.Digest] = bytes.Clone(data)
		}
	}
	s.add(slices.Clone(b.Entries))
	for _, resource := range b.Claims {
		s.claims[resource] = b.Fence.Txn
	}
	if b.End {
		s.end(b.Fence.Txn)
	}
	return nil
}

// add appends entries. A list of batches grows without copying the entries.
func (s *memoryStore) add(batch []record.Entry) {
	if len(batch) == 0 {
		return
	}
	for i := range batch {
		s.count++
		batch[i].Pos = s.count
	}
	s.batches = append(s.batches, batch)
}

// grow adds the leaves that the tree lacks. Only who asks for a head pays for
// it, because no other process can see this journal.
func (s *memoryStore) grow() {
	for _, batch := range s.batches[s.grown:] {
		for _, e := range batch {
			var whole []tlog.Hash
			s.tree, whole = s.tree.Add(e.Leaf)
			s.hashes = append(s.hashes, whole...)
		}
	}
	s.grown = len(s.batches)
}

// erase makes a new list: the lists of readers never change. The parts of an
// entry can share memory, so the header that stays gets its own.
func (s *memoryStore) erase(calls []string) {
	if len(calls) == 0 {
		return
	}
	s.batches = slices.Clone(s.batches)
	for at, batch := range s.batches {
		own := false
		for i, e := range batch {
			if !e.Header.Kind.Erasable() || !slices.Contains(calls, e.Header.Call) {
				continue
			}
			if !own {
				batch, own = slices.Clone(batch), true
				s.batches[at] = batch
			}
			e.Erased, e.Head, e.Salt, e.Body = e.BodyDigest(), bytes.Clone(e.Head), nil, nil
			batch[i] = e
		}
	}
}

// CollectGarbage deletes content that no entry names. This store cannot tell
// whether another opening just stored it, so gone matters only for other
// openings.
func (m *memory) CollectGarbage(ctx context.Context, gone []effect.BlobRef) (c GCReport, err error) {
	err = m.do(ctx, func(s *memoryStore) error {
		named := map[string]bool{}
		for e := range entriesOf(s.batches, false) {
			refs, err := blobsIn(e)
			if err != nil {
				return err
			}
			for _, ref := range refs {
				named[ref.Digest] = true
			}
		}
		for digest, data := range s.blobs {
			ref := effect.BlobRef{Digest: digest, Size: int64(len(data))}
			if named[digest] || (len(s.alive) > 1 && len(data) > InlineMax && !slices.Contains(gone, ref)) {
				c.Size += ref.Size
				continue
			}
			delete(s.blobs, digest)
			c.Blobs, c.Bytes, c.Freed = c.Blobs+1, c.Bytes+ref.Size, c.Freed+ref.Size
		}
		for e := range entriesOf(s.batches, false) {
			c.Size += int64(len(e.Head) + len(e.Body))
		}
		return nil
	})
	return c, err
}

// holder returns the current owner of an unfinished transaction.
func (s *memoryStore) holder(txn string) (owner string, ok bool) {
	t := s.txns[txn]
	if t == nil || t.ended {
		return "", false
	}
	return t.Owner, true
}

func (s *memoryStore) mayTake(t OwnerChange) error {
	if t.To.Txn == "" {
		return nil
	}
	if t.From == "" {
		if s.txns[t.To.Txn] != nil {
			return fmt.Errorf("begin %s: it exists: %w", t.To.Txn, ErrNotOwner)
		}
		return nil
	}
	if owner, ok := s.holder(t.To.Txn); !ok || owner != t.From {
		return fmt.Errorf("take %s from %s: %w", t.To.Txn, t.From, ErrNotOwner)
	}
	return nil
}

// mayPass checks fence and claims as they are after the batch's Take.
func (s *memoryStore) mayPass(b Batch) error {
	//mutant:lease
	if b.Fence.Txn == "" {
		return nil
	}
	owner, ok := s.holder(b.Fence.Txn)
	//mutant:lease
	if b.Take.To.Txn == b.Fence.Txn {
		owner, ok = b.Take.To.Owner, true
	}
	//mutant:lease
	if !ok || owner != b.Fence.Owner {
		return fmt.Errorf("transaction %s, owner %s: %w", b.Fence.Txn, b.Fence.Owner, ErrNotOwner)
	}
	for _, resource := range b.Claims {
		//mutant:lease
		if holder, held := s.claims[resource]; held && holder != b.Fence.Txn {
			return &ClaimedError{Resource: resource, Holder: holder}
		}
	}
	return nil
}

func (s *memoryStore) haveBlobs(blobs []Blob) error {
	for _, blob := range blobs {
		if blob.Inline().IsPresent() {
			continue
		}
		if data, ok := s.blobs[blob.ref.Digest]; !ok || int64(len(data)) != blob.ref.Size {
			return fmt.Errorf("blob %s of %d bytes: %w", blob.ref.Digest, blob.ref.Size, ErrNotFound)
		}
	}
	return nil
}

func (s *memoryStore) take(t OwnerChange) {
	switch {
	case t.To.Txn == "":
	case t.From != "":
		s.txns[t.To.Txn].Owner = t.To.Owner
	default:
		txn := &memoryTxn{Ownership: t.To}
		s.txns[t.To.Txn] = txn
		s.order = append(s.order, txn)
	}
}

func (s *memoryStore) end(txn string) {
	s.txns[txn].ended = true
	s.order = slices.DeleteFunc(s.order, func(t *memoryTxn) bool { return t.ended })
	for resource, holder := range s.claims {
		if holder == txn {
			delete(s.claims, resource)
		}
	}
}

func (m *memory) Entries(ctx context.Context, q Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		var all [][]record.Entry
		if err := m.do(ctx, func(s *memoryStore) error { all = s.batches; return nil }); err != nil {
			yield(record.Entry{}, err)
			return
		}
		found := 0
		for e := range entriesOf(all, q.Newest) {
			if !q.Selects(e) {
				continue
			}
			if ctx.Err() != nil {
				yield(record.Entry{}, context.Cause(ctx))
				return
			}
			if found++; !yield(readEntry(e)) || found == q.Limit {
				return
			}
		}
	}
}

// entriesOf yields the entries of batches, oldest or newest first.
func entriesOf(batches [][]record.Entry, newest bool) iter.Seq[record.Entry] {
	return func(yield func(record.Entry) bool) {
		for i := range batches {
			if newest {
				i = len(batches) - 1 - i
			}
			batch := batches[i]
			for k := range batch {
				if newest {
					k = len(batch) - 1 - k
				}
				if !yield(batch[k]) {
					return
				}
			}
		}
	}
}

// readEntry checks an entry before it returns it, as a journal on a disk must.
func readEntry(e record.Entry) (record.Entry, error) {
	return clone(e).Checked()
}

func clone(e record.Entry) record.Entry {
	e.Head, e.Salt, e.Body = bytes.Clone(e.Head), bytes.Clone(e.Salt), bytes.Clone(e.Body)
	return e
}

// Selects reports whether the query selects an entry. It ignores Limit.
func (q Query) Selects(e record.Entry) bool {
	h := e.Header
	return e.Pos > q.After && (q.Before == 0 || e.Pos < q.Before) &&
		(q.Session == "" || q.Session == h.Session) &&
		(q.Txn == "" || q.Txn == h.Txn) &&
		(q.Call == "" || q.Call == h.Call) &&
		(len(q.Kinds) == 0 || slices.Contains(q.Kinds, h.Kind)) &&
		(len(q.About) == 0 || slices.ContainsFunc(q.About, func(text string) bool { return bytes.Contains(e.Body, []byte(text)) }))
}

func (m *memory) Head(ctx context.Context) (h Head, err error) {
	err = m.do(ctx, func(s *memoryStore) error {
		s.grow()
		h = s.tree.Head()
		return nil
	})
	return h, err
}

func (m *memory) Hashes(ctx context.Context, indexes []int64) (found []tlog.Hash, err error) {
	err = m.do(ctx, func(s *memoryStore) error {
		s.grow()
		for _, i := range indexes {
			if i < 0 || i >= int64(len(s.hashes)) {
				return fmt.Errorf("hash %d of the tree: %w", i, ErrNotFound)
			}
			found = append(found, s.hashes[i])
		}
		return nil
	})
	return found, err
}

func (m *memory) Unfinished(ctx context.Context) (open []Ownership, err error) {
	err = m.do(ctx, func(s *memoryStore) error {
		for _, t := range s.order {
			open = append(open, t.Ownership)
		}
		return nil
	})
	return open, err
}

func (m *memory) StoreContent(ctx context.Context, r io.Reader) (Blob, error) {
	var large bytes.Buffer
	blob, err := ReadContent(ctx, r, func() (io.Writer, error) { return &large, nil })
	if err != nil {
		return Blob{}, err
	}
	err = m.do(ctx, func(s *memoryStore) error {
		if blob.Inline().IsAbsent() {
			s.blobs[blob.ref.Digest] = large.Bytes()
		}
		return nil
	})
	if err != nil {
		return Blob{}, err
	}
	return blob, nil
}

func (m *memory) OpenContent(ctx context.Context, ref effect.BlobRef) (io.ReadCloser, error) {
	if err := ref.Check(); err != nil {
		return nil, err
	}
	var data []byte
	err := m.do(ctx, func(s *memoryStore) error {
		var ok bool
		if data, ok = s.blobs[ref.Digest]; !ok {
			return fmt.Errorf("blob %s: %w", ref.Digest, ErrNotFound)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return CheckedContent(ref, io.NopCloser(bytes.NewReader(data))), nil
}

func (m *memory) Close() error {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	delete(m.store.alive, m.owner)
	return nil
}
