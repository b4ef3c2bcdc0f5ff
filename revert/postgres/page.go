package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// A query is read in pages. So a slow consumer holds no connection, which its
// loop may need for another query.
const (
	firstPage = 256
	lastPage  = 2048 // of a query that reads its whole index for each page
	window    = 4096 // positions that a page looks at for entries of common kinds
)

// reading is one run of a query. What is left of it lies between after and
// before.
type reading struct {
	journal       *Journal
	query         journal.Query
	after, before int64
	found         int
	size          int  // of the next page
	indexed       bool // an index finds the entries; otherwise all of them are read
	all           bool // the query selects all entries
	yield         func(record.Entry, error) bool
}

func newReading(j *Journal, q journal.Query, size int64, yield func(record.Entry, error) bool) *reading {
	r := &reading{journal: j, query: q, after: max(q.After, 0), before: size + 1, size: firstPage, yield: yield}
	if q.Before > 0 {
		r.before = min(r.before, q.Before)
	}
	named := q.Session != "" || q.Txn != "" || q.Call != ""
	r.indexed = named || len(q.Kinds) > 0 && !slices.ContainsFunc(q.Kinds, isCommon)
	r.all = !named && len(q.Kinds) == 0 && len(q.About) == 0
	return r
}

// isCommon reports whether every call leaves such entries: a query for them
// needs most of the journal anyway.
func isCommon(k record.Kind) bool { return k == record.KindStarted || k == record.KindDone }

func (r *reading) run(ctx context.Context) {
	for r.before-r.after > 1 && (r.query.Limit == 0 || r.found < r.query.Limit) {
		after, before := r.bounds()
		page, err := r.read(ctx, after, before)
		if err != nil {
			r.yield(record.Entry{}, err)
			return
		}
		if !r.pass(ctx, page) {
			return
		}
		switch {
		case !r.indexed && !r.advance(after, before):
			return
		case r.indexed && len(page) < r.size:
			return
		}
		r.size = min(2*r.size, lastPage)
	}
}

// bounds returns the positions between which the next page looks.
func (r *reading) bounds() (after, before int64) {
	n := int64(window)
	switch {
	case r.indexed:
		return r.after, r.before
	case r.all:
		n = firstPage
	}
	if r.query.Newest {
		return max(r.after, r.before-1-n), r.before
	}
	return r.after, min(r.before, r.after+n+1)
}

// advance ends a page that was read as a whole.
func (r *reading) advance(after, before int64) bool {
	if r.query.Newest {
		if !r.gap(after) {
			return false
		}
		r.before = after + 1
		return true
	}
	if !r.gap(before) {
		return false
	}
	r.after = before - 1
	return true
}

// storedEntry is a row and its position.
type storedEntry struct {
	pos int64
	row entryRow
}

func (r *reading) read(ctx context.Context, after, before int64) (page []storedEntry, err error) {
	if err := r.journal.usable(ctx); err != nil {
		return nil, err
	}
	text, args := r.sql(after, before)
	err = r.journal.again(ctx, func() error {
		page = page[:0]
		return eachRow(ctx, r.journal.pool, func(rows pgx.Rows) error {
			var e storedEntry
			err := rows.Scan(append([]any{&e.pos}, e.row.fields()...)...)
			page = append(page, e)
			return err
		}, text, args...)
	})
	return page, err
}

// The two queries for a page. Both leave the server no choice that depends on
// statistics, which a new or restarted server lacks.
const (
	byIndex = `WITH m AS MATERIALIZED (SELECT flush, n FROM entries e WHERE true%s),
		p AS MATERIALIZED (SELECT f.pos - f.entries + m.n AS at, m.flush, m.n FROM m JOIN flushes f ON f.id = m.flush
			WHERE f.pos - f.entries + m.n > $1 AND f.pos - f.entries + m.n < $2 ORDER BY 1 %s LIMIT $3)
		SELECT p.at, ` + entryColumns + ` FROM p JOIN entries e ON e.flush = p.flush AND e.n = p.n ORDER BY 1 %s`
	byPosition = `WITH w AS MATERIALIZED (SELECT id, pos - entries AS before FROM flushes
			WHERE pos > $1 AND pos <= (SELECT min(pos) FROM flushes WHERE pos >= $2 - 1))
		SELECT w.before + e.n AS at, ` + entryColumns + ` FROM w JOIN entries e ON e.flush = w.id
		WHERE w.before + e.n > $1 AND w.before + e.n < $2%s ORDER BY 1 %s`
)

// sql returns the query for a page.
func (r *reading) sql(after, before int64) (string, []any) {
	order := "ASC"
	if r.query.Newest {
		order = "DESC"
	}
	args := []any{after, before}
	if !r.indexed {
		where, args := r.where(args)
		return fmt.Sprintf(byPosition, where, order), args
	}
	limit := r.size
	if r.query.Limit > 0 {
		limit = min(limit, r.query.Limit-r.found)
	}
	where, args := r.where(append(args, limit))
	return fmt.Sprintf(byIndex, where, order, order), args
}

// where returns the conditions of the query, and their arguments after args.
func (r *reading) where(args []any) (string, []any) {
	q := r.query
	var b strings.Builder
	and := func(condition string, arg any) {
		args = append(args, arg)
		_, _ = fmt.Fprintf(&b, " AND "+condition, len(args))
	}
	for _, name := range []struct{ column, value string }{{"session", q.Session}, {"txn", q.Txn}, {"call", q.Call}} {
		if name.value != "" {
			and("e."+name.column+" = $%d AND e."+name.column+" <> ''", []byte(name.value))
		}
	}
	if len(q.Kinds) > 0 {
		kinds := make([]string, len(q.Kinds))
		for i, k := range q.Kinds {
			kinds[i] = string(k)
		}
		and("e.kind = ANY($%d::text[])", kinds)
	}
	if len(q.About) > 0 {
		texts := make([][]byte, len(q.About))
		for i, text := range q.About {
			texts[i] = []byte(text)
		}
		and("EXISTS (SELECT FROM unnest($%d::bytea[]) AS a (text) WHERE position(a.text IN e.body) > 0)", texts)
	}
	return b.String(), args
}

// pass yields the entries of a page.
func (r *reading) pass(ctx context.Context, page []storedEntry) bool {
	for _, e := range page {
		if err := r.journal.usable(ctx); err != nil {
			r.yield(record.Entry{}, err)
			return false
		}
		if !r.gap(e.pos) {
			return false
		}
		if r.query.Newest {
			r.before = e.pos
		} else {
			r.after = e.pos
		}
		if !r.one(e.row.entry(e.pos)) {
			return false
		}
	}
	return true
}

// one yields an entry, and reports whether the reading goes on.
func (r *reading) one(e record.Entry, err error) bool {
	r.found++
	return r.yield(e, err) && r.found != r.query.Limit
}

// gap yields an error for each position before pos that has no entry, if the
// query selects all entries.
func (r *reading) gap(pos int64) bool {
	for r.all && (!r.query.Newest && r.after+1 < pos || r.query.Newest && r.before-1 > pos) {
		missing := r.after + 1
		if r.query.Newest {
			missing = r.before - 1
			r.before--
		} else {
			r.after++
		}
		if !r.one(record.Entry{Pos: missing}, fmt.Errorf("%w: entry %d is missing", record.ErrDamaged, missing)) {
			return false
		}
	}
	return true
}
