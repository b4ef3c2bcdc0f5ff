package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Older batches are read in pages. So a slow consumer does not hold a
// connection, which its loop may need for another query, and does not prevent
// SQLite from restarting its write-ahead log.
const (
	pageBatches = 256
	pageBytes   = 1 << 20
)

// Entries yields the entries that the query selects among those stored when it
// begins: stored batches never move, so the key of the last one makes a
// snapshot of all pages. A damaged entry is yielded with its position alone,
// followed by the next ones.
func (j *Journal) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		if err := j.usable(ctx); err != nil {
			yield(record.Entry{}, err)
			return
		}
		r := reading{ctx: ctx, journal: j, query: q, places: placesFor(q), left: q.Limit, yield: yield}
		if err := r.run(); err != nil {
			yield(record.Entry{}, j.causeOrNil(ctx, err))
		}
	}
}

// reading is a query that runs.
type reading struct {
	ctx     context.Context //nolint:containedctx // as short as the call
	journal *Journal
	query   journal.Query
	places  []string // the entries are in batches of one of these places; nil: in any
	left    int      // maximum number of remaining entries; 0 or less: no limit
	yield   func(record.Entry, error) bool
}

// run yields the entries of the batches in the derived tables, and of those in
// memory, in the order that the query wants.
func (r *reading) run() error {
	s, err := r.journal.snapshot(r.ctx)
	if err != nil {
		return err
	}
	older := func() (bool, error) { return r.older(s) }
	newer := func() (bool, error) { return r.newer(s), nil }
	parts := []func() (bool, error){older, newer}
	if r.query.Newest {
		parts = []func() (bool, error){newer, older}
	}
	for _, part := range parts {
		if more, err := part(); !more || err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) newer(s snapshot) (more bool) {
	batches := slices.All(s.batches)
	if r.query.Newest {
		batches = slices.Backward(s.batches)
	}
	for _, b := range batches {
		if b.last() > r.query.After && (r.query.Before == 0 || b.key.pos() < r.query.Before) && !r.batch(b, true) {
			return false
		}
	}
	return true
}

// older reads pages of the batches that the derived tables have.
func (r *reading) older(s snapshot) (more bool, err error) {
	after, upTo := batchKey(0), s.after
	if r.query.After > 0 {
		if len(s.batches) > 0 && r.query.After >= s.batches[0].key.pos()-1 {
			return true, nil
		}
		after = keyAt(r.query.After + 1)
		if b, err := r.journal.batchOf(r.ctx, r.query.After+1); err != nil {
			return false, err
		} else if b != nil {
			after = b.key - 1
		}
	}
	if r.query.Before > 0 {
		upTo = min(upTo, keyAt(r.query.Before)-1)
	}
	for after < upTo {
		page, atEnd, err := r.page(after, upTo)
		for _, b := range page {
			if !r.batch(b, false) {
				return false, nil
			}
		}
		if err != nil || atEnd {
			return err == nil, err
		}
		if last := page[len(page)-1].key; r.query.Newest {
			upTo = last - 1
		} else {
			after = last
		}
	}
	return true, nil
}

// batch yields the entries of one batch that the query selects. It returns false
// if nothing more is wanted. An entry whose header is not reliable is checked
// before it is left out. If the batch is shared, the caller gets a copy.
func (r *reading) batch(b *storedBatch, shared bool) (more bool) {
	for n := range b.entries {
		i := n
		if r.query.Newest {
			i = len(b.entries) - 1 - n
		}
		if pos := b.key.pos() + int64(i); pos <= r.query.After || r.query.Before != 0 && pos >= r.query.Before || b.bad == nil && !selects(r.query, b.entries[i].names, b.entries[i].body) {
			continue
		}
		if r.ctx.Err() != nil {
			r.yield(record.Entry{}, context.Cause(r.ctx))
			return false
		}
		e, err := b.checked(i)
		if err == nil && b.bad != nil && !selects(r.query, headerNames(e.Header), e.Body) {
			continue
		}
		if shared {
			e.Head, e.Salt, e.Body = bytes.Clone(e.Head), bytes.Clone(e.Salt), bytes.Clone(e.Body)
		}
		if !r.yield(e, err) {
			return false
		}
		if r.left--; r.left == 0 {
			return false
		}
	}
	return true
}

// page reads the next batches.
func (r *reading) page(after, upTo batchKey) (page []*storedBatch, atEnd bool, err error) {
	limit := pageBatches
	if r.left > 0 {
		limit = min(limit, r.left)
	}
	query, args := selectBatches(r.query, r.places, after, upTo, limit)
	stmt, err := r.journal.prepared(query)
	if err != nil {
		return nil, false, err
	}
	rows, err := stmt.QueryContext(r.ctx, args...)
	if err != nil {
		return nil, false, err
	}
	n, size := 0, 0
	for size < pageBytes && rows.Next() {
		b, err := scanBatch(rows)
		if err != nil {
			return page, false, errors.Join(err, rows.Close())
		}
		n, size = n+1, size+b.size
		if len(page) > 0 && page[len(page)-1].key == b.key { // two of the kinds
			continue
		}
		r.expect(b)
		page = append(page, b)
	}
	atEnd = n < limit && size < pageBytes
	return page, atEnd, errors.Join(rows.Err(), rows.Close())
}

func selects(q journal.Query, n names, body []byte) bool {
	if q.Session != "" && n.session != q.Session || q.Txn != "" && n.txn != q.Txn || q.Call != "" && n.call != q.Call {
		return false
	}
	if len(q.Kinds) > 0 && !slices.Contains(q.Kinds, n.kind) {
		return false
	}
	return len(q.About) == 0 || slices.ContainsFunc(q.About, func(text string) bool { return bytes.Contains(body, []byte(text)) })
}

// expect marks a batch that the index names and that has no such entry.
func (r *reading) expect(b *storedBatch) {
	belongs := func(p packedEntry) bool { return slices.ContainsFunc(r.places, p.in) }
	//mutant:check
	if b.bad == nil && len(r.places) > 0 && !slices.ContainsFunc(b.entries, belongs) {
		b.bad = fmt.Errorf("%w: the index names the batch of entry %d for another one", record.ErrDamaged, b.key.pos())
		b.lost = b.bad
	}
}

// prepared returns a prepared query of the reader. Preparing it takes longer
// than running it. There are few queries, as they differ by their columns and
// never by their values.
func (j *Journal) prepared(query string) (*sql.Stmt, error) {
	if s, ok := j.asked.Load(query); ok {
		if stmt, ok := s.(*sql.Stmt); ok {
			return stmt, nil
		}
	}
	stmt, err := j.reader.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	j.asked.Store(query, stmt) // a query that another goroutine has just prepared is closed with the reader
	return stmt, nil
}

// notIndexed reports whether a kind has no places: every call leaves such
// entries.
func notIndexed(k record.Kind) bool { return k == record.KindStarted || k == record.KindDone }

// placesFor returns the places whose batches have all entries that a query
// selects: one, or one for each kind. Without such places, all batches are read.
func placesFor(q journal.Query) (places []string) {
	switch {
	case q.Call != "":
		return []string{placeOf(byCall, q.Call)}
	case q.Txn != "":
		return []string{placeOf(byTxn, q.Txn)}
	case q.Session != "":
		return []string{placeOf(bySession, q.Session)}
	case slices.ContainsFunc(q.Kinds, notIndexed):
		return nil
	}
	for _, k := range slices.Compact(slices.Sorted(slices.Values(q.Kinds))) {
		places = append(places, placeOf(byKind, string(k)))
	}
	return places
}

// selectBatches returns the query for a page. It leaves SQLite no choice of an
// index. The places of several kinds are merged, each from its own range.
func selectBatches(q journal.Query, places []string, after, upTo batchKey, limit int) (query string, args []any) {
	const ofPlace = "SELECT places.key AS key, n, data FROM places LEFT JOIN batches ON batches.key = places.key" +
		" WHERE name = ? AND places.key > ? AND places.key <= ?"
	var b strings.Builder
	for i, name := range places {
		if i > 0 {
			b.WriteString(" UNION ALL ")
		}
		b.WriteString(ofPlace)
		args = append(args, name, int64(after), int64(upTo))
		if len(q.Kinds) > 0 && name[0] != byKind {
			b.WriteString(" AND kinds & ? <> 0")
			args = append(args, kindSet(q.Kinds...))
		}
	}
	if len(places) == 0 {
		b.WriteString("SELECT key, n, data FROM batches WHERE key > ? AND key <= ?")
		args = append(args, int64(after), int64(upTo))
	}
	b.WriteString(" ORDER BY key")
	if q.Newest {
		b.WriteString(" DESC")
	}
	b.WriteString(" LIMIT ?+0") // with a bare parameter, SQLite plans again for each value
	return b.String(), append(args, limit)
}

// scanBatch reads a row of batches. One that only the index has is damage.
func scanBatch(rows *sql.Rows) (*storedBatch, error) {
	var key batchKey
	var n sql.NullInt64
	var data []byte
	if err := rows.Scan(&key, &n, &data); err != nil {
		return nil, err
	}
	return unpack(key, n.Int64, data), nil
}

const digestWord = "sha256:"

// stored returns a digest as it is stored: its bytes without the prefix.
func stored(digest string) []byte {
	if hexed, ok := strings.CutPrefix(digest, digestWord); ok {
		if b, err := hex.DecodeString(hexed); err == nil && len(b) == sha256.Size {
			return b
		}
	}
	return []byte(digest)
}

// digestOf returns the text of a stored digest. Invalid bytes fit no entry.
func digestOf(b []byte) string {
	if len(b) != sha256.Size {
		return string(b)
	}
	return digestWord + hex.EncodeToString(b)
}

// Unfinished lists the transactions that have not ended, oldest first.
func (j *Journal) Unfinished(ctx context.Context) ([]journal.Ownership, error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	all, err := j.unfinished(ctx)
	if err != nil {
		return nil, j.causeOf(ctx, err)
	}
	return all, nil
}

// unfinished reads the derived table and the batches after it as one snapshot.
func (j *Journal) unfinished(ctx context.Context) (all []journal.Ownership, err error) {
	tx, err := j.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // it only read
	if err := eachOf(ctx, tx, "SELECT txn, owner FROM txns WHERE ended = 0 ORDER BY age", func(rows *sql.Rows) error {
		var o journal.Ownership
		err := rows.Scan(&o.Txn, &o.Owner)
		all = append(all, o)
		return err
	}); err != nil {
		return nil, err
	}
	var newer ledger
	err = eachOf(ctx, tx, "SELECT key, n, data FROM batches WHERE key > (SELECT indexed FROM state) ORDER BY key", func(rows *sql.Rows) error {
		b, err := scanBatch(rows)
		if err == nil {
			err = b.bad
		}
		if err == nil {
			newer.add(b.ops)
		}
		return err
	})
	return newer.unfinished(all), err
}

// eachOf calls fn for each row of a query.
func eachOf(ctx context.Context, tx interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, query string, fn func(rows *sql.Rows) error,
) error {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := fn(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}
