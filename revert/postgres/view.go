package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// view is what the batches of a flush depend on, as the transaction read and
// locked it, with the changes of the batches that passed.
type view struct {
	txns   map[string]txnState
	claims map[string]string // transaction, by resource
	blobs  map[string]int64  // size, by digest; large or earlier content that the batches name
	calls  []string          // to erase
	bodies []erasable
	damage error // an entry that cannot be erased

	taken []string          // transactions that changed or got their owner, in order
	began map[string]bool   // those of them that are new
	ended []string          // transactions that ended
	got   map[string]string // claims to store
}

type txnState struct {
	owner string
	ended bool
}

func newView(batches []journal.Batch) view {
	v := view{txns: map[string]txnState{}, claims: map[string]string{}, blobs: map[string]int64{}, began: map[string]bool{}, got: map[string]string{}}
	for _, b := range batches {
		for _, txn := range []string{b.Take.To.Txn, b.Fence.Txn} {
			if txn != "" {
				v.txns[txn] = txnState{}
			}
		}
		for _, resource := range b.Claims {
			v.claims[resource] = ""
		}
		for _, blob := range b.Blobs {
			if blob.Inline().IsAbsent() {
				v.blobs[blob.Ref().Digest] = -1
			}
		}
		v.calls = append(v.calls, b.Erase...)
	}
	return v
}

// queue adds the queries that fill the view. Nodes lock rows in one order.
func (v *view) queue(b *pgx.Batch, j *Journal) {
	if len(v.txns) > 0 {
		ids := sortedBytes(v.txns)
		clear(v.txns)
		b.Queue("SELECT txn, owner, ended FROM txns WHERE txn = ANY($1::bytea[]) ORDER BY txn FOR NO KEY UPDATE", ids).Query(func(rows pgx.Rows) error {
			return each(rows, func() error {
				var txn []byte
				var t txnState
				err := rows.Scan(&txn, &t.owner, &t.ended)
				v.txns[string(txn)] = t
				return err
			})
		})
	}
	if len(v.claims) > 0 {
		ids := claimIDs(slices.Collect(maps.Keys(v.claims)))
		clear(v.claims)
		b.Queue("SELECT resource, txn FROM claims WHERE id = ANY($1::bytea[])", ids).Query(func(rows pgx.Rows) error {
			return each(rows, func() error {
				var resource, txn []byte
				err := rows.Scan(&resource, &txn)
				v.claims[string(resource)] = string(txn)
				return err
			})
		})
	}
	if len(v.blobs) > 0 {
		v.queueBlobs(b, j)
	}
	if len(v.calls) > 0 {
		v.queueErasures(b)
	}
}

// queueBlobs reads the sizes of content, and keeps collectors away until the
// transaction ends.
func (v *view) queueBlobs(b *pgx.Batch, j *Journal) {
	var digests [][]byte
	for digest := range v.blobs {
		digests = append(digests, packDigest(digest))
	}
	clear(v.blobs)
	b.Queue("SELECT pg_advisory_xact_lock_shared($1, $2)", j.class, collectLock)
	b.Queue("SELECT digest, size FROM blobs WHERE digest = ANY($1::bytea[])", digests).Query(func(rows pgx.Rows) error {
		return each(rows, func() error {
			var digest []byte
			var size int64
			err := rows.Scan(&digest, &size)
			v.blobs[unpackDigest(digest)] = size
			return err
		})
	})
}

// eachRow calls fn for each row of a query.
func eachRow(ctx context.Context, q querier, fn func(rows pgx.Rows) error, query string, args ...any) error {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	return each(rows, func() error { return fn(rows) })
}

func each(rows pgx.Rows, fn func() error) error {
	defer rows.Close()
	for rows.Next() {
		if err := fn(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// apply checks a batch against the view and changes the view. A refused batch
// changes nothing.
func (v *view) apply(b journal.Batch) error {
	if err := v.mayTake(b.Take); err != nil {
		return err
	}
	if err := v.mayPass(b); err != nil {
		return err
	}
	for _, blob := range b.Blobs {
		ref := blob.Ref()
		if size, ok := v.blobs[ref.Digest]; blob.Inline().IsAbsent() && (!ok || size != ref.Size) {
			return fmt.Errorf("blob %s of %d bytes: %w", ref.Digest, ref.Size, journal.ErrNotFound)
		}
	}
	if len(b.Erase) > 0 && v.damage != nil {
		return v.damage
	}
	v.take(b.Take)
	for _, resource := range b.Claims {
		if v.claims[resource] != b.Fence.Txn {
			v.claims[resource], v.got[resource] = b.Fence.Txn, b.Fence.Txn
		}
	}
	for _, blob := range b.Blobs {
		if blob.Inline().IsPresent() {
			v.blobs[blob.Ref().Digest] = blob.Ref().Size
		}
	}
	if b.End {
		v.end(b.Fence.Txn)
	}
	return nil
}

func (v *view) mayTake(t journal.OwnerChange) error {
	if t.To.Txn == "" {
		return nil
	}
	had, exists := v.txns[t.To.Txn]
	switch {
	case t.From == "" && exists:
		return fmt.Errorf("begin %s: it exists: %w", t.To.Txn, journal.ErrNotOwner)
	case t.From != "" && (!exists || had.ended || had.owner != t.From):
		return fmt.Errorf("take %s from %s: %w", t.To.Txn, t.From, journal.ErrNotOwner)
	}
	return nil
}

// mayPass checks fence and claims as they are after the batch's Take.
func (v *view) mayPass(b journal.Batch) error {
	if b.Fence.Txn == "" {
		return nil
	}
	has, exists := v.txns[b.Fence.Txn]
	if b.Take.To.Txn == b.Fence.Txn {
		has, exists = txnState{owner: b.Take.To.Owner}, true
	}
	if !exists || has.ended || has.owner != b.Fence.Owner {
		return fmt.Errorf("transaction %s, owner %s: %w", b.Fence.Txn, b.Fence.Owner, journal.ErrNotOwner)
	}
	for _, resource := range b.Claims {
		if holder, held := v.claims[resource]; held && holder != b.Fence.Txn {
			return &journal.ClaimedError{Resource: resource, Holder: holder}
		}
	}
	return nil
}

func (v *view) take(t journal.OwnerChange) {
	if t.To.Txn == "" {
		return
	}
	if t.From == "" {
		v.began[t.To.Txn] = true
	}
	if !slices.Contains(v.taken, t.To.Txn) {
		v.taken = append(v.taken, t.To.Txn)
	}
	v.txns[t.To.Txn] = txnState{owner: t.To.Owner}
}

func (v *view) end(txn string) {
	v.txns[txn] = txnState{owner: v.txns[txn].owner, ended: true}
	v.ended = append(v.ended, txn)
	held := func(_, holder string) bool { return holder == txn }
	maps.DeleteFunc(v.claims, held)
	maps.DeleteFunc(v.got, held)
}

func sortedBytes[T any](m map[string]T) (all [][]byte) {
	for _, s := range slices.Sorted(maps.Keys(m)) {
		all = append(all, []byte(s))
	}
	return all
}

// claimID is the key of a resource.
func claimID(resource string) []byte {
	sum := sha256.Sum256([]byte(resource))
	return sum[:]
}

func claimIDs(resources []string) (ids [][]byte) {
	for _, r := range resources {
		ids = append(ids, claimID(r))
	}
	return ids
}

// erasable is an entry whose body an erasure destroys.
type erasable struct {
	flush  int64
	n      int32
	digest []byte // of the body
}

// queueErasures reads and locks the bodies to erase.
func (v *view) queueErasures(b *pgx.Batch) {
	var calls [][]byte
	for _, call := range v.calls {
		calls = append(calls, []byte(call))
	}
	b.Queue("SELECT flush, n, "+entryColumns+" FROM entries WHERE call = ANY($1::bytea[]) ORDER BY flush, n FOR NO KEY UPDATE", calls).Query(func(rows pgx.Rows) error {
		return each(rows, func() error {
			var at erasable
			var r entryRow
			if err := rows.Scan(append([]any{&at.flush, &at.n}, r.fields()...)...); err != nil {
				return err
			}
			e, err := r.entry(0)
			if err != nil {
				v.damage = fmt.Errorf("erase %s: %w", r.call, err)
				return nil
			}
			if e.Header.Kind.Erasable() && e.Erased == "" {
				at.digest = packDigest(e.BodyDigest())
				v.bodies = append(v.bodies, at)
			}
			return nil
		})
	})
}

// entryColumns are the columns of an entry, in the order of entryRow.fields.
const entryColumns = "session, txn, call, kind, head, salt, body, leaf, erased"

// entryRow is an entry as a row has it.
type entryRow struct {
	session, txn, call []byte
	kind               string
	head, salt, body   []byte
	leaf, erased       []byte
}

func (r *entryRow) fields() []any {
	return []any{&r.session, &r.txn, &r.call, &r.kind, &r.head, &r.salt, &r.body, &r.leaf, &r.erased}
}

// entry returns the checked entry. The names that the row repeats must be those
// of its header.
func (r *entryRow) entry(pos int64) (record.Entry, error) {
	e := record.Entry{Pos: pos, Head: r.head, Salt: r.salt, Body: r.body, Leaf: unpackDigest(r.leaf), Erased: unpackDigest(r.erased)}
	e, err := e.Checked()
	if err != nil {
		return e, err
	}
	h := e.Header
	same := func(row []byte, name string) bool { return bytes.Equal(row, []byte(name)) }
	if !same(r.session, h.Session) || !same(r.txn, h.Txn) || !same(r.call, h.Call) || r.kind != string(h.Kind) {
		return record.Entry{Pos: pos}, fmt.Errorf("%w: entry %d is stored under other names than its own", record.ErrDamaged, pos)
	}
	return e, nil
}
