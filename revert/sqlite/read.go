package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Entries are read in pages. So a slow consumer does not hold a connection,
// which its loop may need for another query, and does not prevent SQLite from
// restarting its write-ahead log.
const (
	pageEntries = 256
	pageBytes   = 1 << 20
)

// Entries yields the entries that the query selects among those stored when it
// begins. One page is a snapshot. Stored entries never move, so an upper bound
// makes a snapshot of the later pages. A damaged entry is yielded with its
// position alone, followed by the next ones.
func (j *Journal) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		if err := j.usable(ctx); err != nil {
			yield(record.Entry{}, err)
			return
		}
		s := readRange{after: q.After, upTo: unbounded, left: q.Limit}
		for s.after < s.upTo {
			page, err := j.page(ctx, q, &s)
			for _, e := range page {
				if ctx.Err() != nil {
					yield(record.Entry{}, context.Cause(ctx))
					return
				}
				if !yield(readEntry(e)) {
					return
				}
			}
			if err != nil {
				yield(record.Entry{}, j.causeOf(ctx, err))
				return
			}
		}
	}
}

const unbounded = math.MaxInt64

// readRange is the rest of a query.
type readRange struct {
	after, upTo int64
	left        int // maximum number of remaining entries; 0: no limit
}

// row is a stored entry, with the columns that repeat its header.
type row struct {
	record.Entry
	kind, session, txn, call string
}

// page reads the next entries and shortens the range by them. The range is
// empty at the end.
func (j *Journal) page(ctx context.Context, q journal.Query, s *readRange) ([]row, error) {
	limit := pageEntries
	if s.left > 0 {
		limit = min(limit, s.left)
	}
	query, args := selectEntries(q, *s, limit)
	stmt, err := j.prepared(query)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	page, size := []row{}, 0
	for len(page) < limit && size < pageBytes && rows.Next() {
		r, err := scan(rows)
		if err != nil {
			_ = rows.Close() // the first error counts
			return page, err
		}
		page, size = append(page, r), size+len(r.Body)
	}
	if err := rows.Err(); err != nil {
		_ = rows.Close()
		return page, err
	}
	s.shorten(page, q.Newest, len(page) < limit && size < pageBytes)
	err = rows.Close()
	if err == nil && s.upTo == unbounded && s.after < s.upTo {
		s.upTo, err = j.size(ctx)
	}
	return page, err
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

func (s *readRange) shorten(page []row, newest, atEnd bool) {
	if atEnd {
		s.after = s.upTo
		return
	}
	if last := page[len(page)-1].Pos; newest {
		s.upTo = last - 1
	} else {
		s.after = last
	}
	if s.left > 0 {
		if s.left -= len(page); s.left == 0 {
			s.after = s.upTo
		}
	}
}

// selectEntries returns the query for a page. SQLite has no statistics to
// choose an index, so the query leaves no choice: the plus signs hide all but
// the most selective index. Each index returns its rows in the order of
// positions. The index of kinds does so for one kind. Several kinds are merged,
// each from its own range, so a query for rare kinds reads nothing else.
func selectEntries(q journal.Query, s readRange, limit int) (query string, args []any) {
	var b strings.Builder
	parts := [][]record.Kind{q.Kinds}
	if q.Call+q.Txn+q.Session == "" && len(q.Kinds) > 0 {
		parts = splitKinds(q.Kinds)
	}
	for i, kinds := range parts {
		if i > 0 {
			b.WriteString(" UNION ALL ")
		}
		args = append(args, selectSome(&b, q, s, kinds)...)
	}
	b.WriteString(" ORDER BY pos")
	if q.Newest {
		b.WriteString(" DESC")
	}
	b.WriteString(" LIMIT ?+0") // with a bare parameter, SQLite plans again for each value
	return b.String(), append(args, limit)
}

// notIndexed reports whether no index has a kind; see seldom.
func notIndexed(k record.Kind) bool {
	return k == record.KindBegun || k == record.KindStarted || k == record.KindDone || k == record.KindCommitted
}

// splitKinds returns each indexed kind alone, and the other kinds together.
func splitKinds(kinds []record.Kind) (parts [][]record.Kind) {
	var rest []record.Kind
	for _, k := range slices.Compact(slices.Sorted(slices.Values(kinds))) {
		if notIndexed(k) {
			rest = append(rest, k)
		} else {
			parts = append(parts, []record.Kind{k})
		}
	}
	if len(rest) > 0 {
		parts = append(parts, rest)
	}
	return parts
}

// selectSome writes the part of a query that uses one index.
func selectSome(b *strings.Builder, q journal.Query, s readRange, kinds []record.Kind) []any {
	b.WriteString("SELECT entries.pos AS pos, kind, session, txn, call, head, salt, body, leaf, digest FROM entries" +
		" LEFT JOIN bodies ON bodies.pos = entries.pos LEFT JOIN erased ON erased.pos = entries.pos WHERE entries.pos > ? AND entries.pos <= ?")
	args := []any{s.after, s.upTo}
	hide := ""
	for _, c := range []struct{ column, value string }{{"call", q.Call}, {"txn", q.Txn}, {"session", q.Session}} {
		if c.value != "" {
			b.WriteString(" AND " + hide + c.column + " = ? AND " + hide + c.column + " <> ''")
			args = append(args, c.value)
			hide = "+"
		}
	}
	if len(kinds) > 0 {
		b.WriteString(" AND " + hide + "kind IN (?" + strings.Repeat(", ?", len(kinds)-1) + ")")
		for _, kind := range kinds {
			args = append(args, string(kind))
		}
		if hide == "" && !slices.ContainsFunc(kinds, notIndexed) {
			b.WriteString(" AND " + indexedKinds) // the same text as in the index, or SQLite does not use it
		}
	}
	if len(q.About) > 0 {
		b.WriteString(" AND (instr(body, ?)" + strings.Repeat(" OR instr(body, ?)", len(q.About)-1) + ")")
		for _, text := range q.About {
			args = append(args, []byte(text)) // otherwise SQLite treats the body as a text, which ends at a zero byte
		}
	}
	return args
}

func scan(rows *sql.Rows) (r row, err error) {
	var leaf, erased []byte
	err = rows.Scan(&r.Pos, &r.kind, &r.session, &r.txn, &r.call, &r.Head, &r.Salt, &r.Body, &leaf, &erased)
	r.Leaf, r.Erased = digestOf(leaf), digestOf(erased)
	return r, err
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

// readEntry checks an entry and its repeated columns.
func readEntry(r row) (record.Entry, error) {
	e, err := r.Checked()
	if err != nil {
		return e, err
	}
	h := e.Header
	if string(h.Kind) != r.kind || h.Session != r.session || h.Txn != r.txn || h.Call != r.call {
		return record.Entry{Pos: r.Pos}, fmt.Errorf("%w: entry %d is stored under another header", record.ErrDamaged, r.Pos)
	}
	return e, nil
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

func (j *Journal) unfinished(ctx context.Context) (all []journal.Ownership, err error) {
	rows, err := j.reader.QueryContext(ctx, "SELECT txn, owner FROM txns WHERE ended = 0 ORDER BY age")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err below returns the error
	for rows.Next() {
		var o journal.Ownership
		if err := rows.Scan(&o.Txn, &o.Owner); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, rows.Err()
}
