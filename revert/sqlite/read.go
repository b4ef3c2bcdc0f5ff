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
	"github.com/remit-dev/remit/revert/kind"
	"github.com/remit-dev/remit/revert/record"
)

// One page of entries is read at a time, so that a slow consumer neither holds a
// connection, which it may need itself for a query inside its loop, nor keeps
// SQLite from starting its write-ahead log anew.
const (
	pageEntries = 256
	pageBytes   = 1 << 20
)

// Entries yields what the query selects among what is stored when it begins.
// A page is a snapshot by itself, and since nothing stored ever moves an upper
// bound is one for the pages after the first. A damaged entry is yielded with its
// position alone, and its neighbours after it.
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
				yield(record.Entry{}, j.because(ctx, err))
				return
			}
		}
	}
}

const unbounded = math.MaxInt64

// readRange is what is left to read.
type readRange struct {
	after, upTo int64
	left        int // entries that may still come; 0: any number
}

// row is an entry as it is stored, with the columns that repeat its head.
type row struct {
	record.Entry
	kind, session, txn, call string
}

// page reads the next entries and shortens the span by them, to nothing when it
// has come to the end.
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

// prepared returns a query of the reader, which is made once: to make it takes longer than to ask it. There are few, as
// they differ by what is asked for and never by its value.
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
	j.asked.Store(query, stmt) // one that somebody else has just made is closed with the reader
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

// selectEntries writes the query for a page. SQLite has no statistics to choose
// an index by, so it is given no choice: the plus signs hide all but the index
// that selects least. Each index gives its rows in the order of positions. That of
// kinds does so for one kind; several are merged, each from its own place, so that
// whoever looks for what is rare reads nothing else.
func selectEntries(q journal.Query, s readRange, limit int) (query string, args []any) {
	var b strings.Builder
	parts := [][]kind.Kind{q.Kinds}
	if q.Call+q.Txn+q.Session == "" && len(q.Kinds) > 0 {
		parts = apart(q.Kinds)
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
	b.WriteString(" LIMIT ?+0") // a bare parameter would have SQLite plan anew for each value
	return b.String(), append(args, limit)
}

// often are the kinds that no index has; see seldom.
func often(k kind.Kind) bool {
	return k == kind.Begun || k == kind.Started || k == kind.Done || k == kind.Committed
}

// apart has each kind alone that an index leads to, and the others together.
func apart(kinds []kind.Kind) (parts [][]kind.Kind) {
	var rest []kind.Kind
	for _, k := range slices.Compact(slices.Sorted(slices.Values(kinds))) {
		if often(k) {
			rest = append(rest, k)
		} else {
			parts = append(parts, []kind.Kind{k})
		}
	}
	if len(rest) > 0 {
		parts = append(parts, rest)
	}
	return parts
}

// selectSome writes the part of a query that goes through one index.
func selectSome(b *strings.Builder, q journal.Query, s readRange, kinds []kind.Kind) []any {
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
		if hide == "" && !slices.ContainsFunc(kinds, often) {
			b.WriteString(" AND " + seldom) // as the index says it, or SQLite does not see that it fits
		}
	}
	if len(q.About) > 0 {
		b.WriteString(" AND (instr(body, ?)" + strings.Repeat(" OR instr(body, ?)", len(q.About)-1) + ")")
		for _, text := range q.About {
			args = append(args, []byte(text)) // else the body would be taken for a text, which ends at a zero
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

// stored is a digest as it is stored: its bytes without the word before them.
func stored(digest string) []byte {
	if hexed, ok := strings.CutPrefix(digest, digestWord); ok {
		if b, err := hex.DecodeString(hexed); err == nil && len(b) == sha256.Size {
			return b
		}
	}
	return []byte(digest)
}

// digestOf is the text of a stored digest. Bytes that are none fit no entry.
func digestOf(b []byte) string {
	if len(b) != sha256.Size {
		return string(b)
	}
	return digestWord + hex.EncodeToString(b)
}

// readEntry checks an entry and what was repeated of it.
func readEntry(r row) (record.Entry, error) {
	e, err := r.Checked()
	if err != nil {
		return e, err
	}
	h := e.Header
	if string(h.Kind) != r.kind || h.Session != r.session || h.Txn != r.txn || h.Call != r.call {
		return record.Entry{Pos: r.Pos}, fmt.Errorf("%w: entry %d is filed under another header", record.ErrDamaged, r.Pos)
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
		return nil, j.because(ctx, err)
	}
	return all, nil
}

func (j *Journal) unfinished(ctx context.Context) (all []journal.Ownership, err error) {
	rows, err := j.reader.QueryContext(ctx, "SELECT txn, owner FROM txns WHERE ended = 0 ORDER BY age")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err below tells what went wrong
	for rows.Next() {
		var o journal.Ownership
		if err := rows.Scan(&o.Txn, &o.Owner); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, rows.Err()
}
