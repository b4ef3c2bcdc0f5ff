package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// pageEntries is the size of a page. A slow consumer does not hold a
// connection, which its loop may need for another query.
const pageEntries = 256

// catchUp gives a position to everything that was acknowledged before, and
// returns the tree head. A role that may only read sees what the sequencer has
// reached.
func (j *Journal) catchUp(ctx context.Context) (h journal.Head, err error) {
	if err := j.usable(ctx); err != nil {
		return h, err
	}
	err = j.sequenceAll(ctx, j.pool)
	if code := codeOf(err); err != nil && code != codeNoRights && code != codeReadOnly {
		return h, j.causeOf(ctx, err)
	}
	if err := j.pool.QueryRow(ctx, "SELECT size, root FROM journal").Scan(&h.Size, &h.Root); err != nil {
		return h, j.causeOf(ctx, err)
	}
	for {
		seen := j.seen.Load()
		if h.Size < seen {
			return h, fmt.Errorf("journal: it had %d entries and has %d: %w", seen, h.Size, ErrLost)
		}
		if j.seen.CompareAndSwap(seen, h.Size) {
			return h, nil
		}
	}
}

// Head returns the tree head over all entries that were acknowledged before.
func (j *Journal) Head(ctx context.Context) (journal.Head, error) { return j.catchUp(ctx) }

// Hashes returns stored hashes of the tree.
func (j *Journal) Hashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	for _, i := range indexes {
		if i < 0 || i > math.MaxInt64/2 {
			return nil, fmt.Errorf("hash %d of the tree: %w", i, journal.ErrNotFound)
		}
		if i >= tlog.StoredHashCount(j.seen.Load()) {
			if _, err := j.catchUp(ctx); err != nil {
				return nil, err
			}
		}
		if i >= tlog.StoredHashCount(j.seen.Load()) {
			return nil, fmt.Errorf("hash %d of the tree: %w", i, journal.ErrNotFound)
		}
	}
	found, err := storedHashes(ctx, j.pool, indexes)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", record.ErrDamaged, err)
	}
	return found, j.causeOf(ctx, err)
}

// Entries yields the entries that the query selects among those acknowledged
// when it begins: a position never changes, so the size of the tree makes a
// snapshot of all pages. A damaged entry is yielded with its position alone,
// followed by the next ones.
func (j *Journal) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		head, err := j.catchUp(ctx)
		if err != nil {
			yield(record.Entry{}, err)
			return
		}
		r := reading{journal: j, query: q, after: max(q.After, 0), before: head.Size + 1, yield: yield}
		if q.Before > 0 {
			r.before = min(r.before, q.Before)
		}
		for r.page(ctx) {
			continue
		}
	}
}

// reading is one run of a query. What is left of it lies between after and
// before.
type reading struct {
	journal       *Journal
	query         journal.Query
	after, before int64
	found         int
	yield         func(record.Entry, error) bool
}

// page yields the next entries, and reports whether there may be more.
func (r *reading) page(ctx context.Context) bool {
	limit := pageEntries
	if r.query.Limit > 0 {
		limit = min(limit, r.query.Limit-r.found)
	}
	if limit == 0 || r.before-r.after < 2 {
		return false
	}
	page, err := r.read(ctx, limit)
	if err != nil {
		r.yield(record.Entry{}, err)
		return false
	}
	for _, e := range page {
		if err := r.journal.usable(ctx); err != nil {
			r.yield(record.Entry{}, err)
			return false
		}
		if !r.pass(e) {
			return false
		}
	}
	return len(page) == limit || r.gap(r.end())
}

// storedEntry is a row and its position.
type storedEntry struct {
	pos int64
	row entryRow
}

func (r *reading) read(ctx context.Context, limit int) (page []storedEntry, err error) {
	if err := r.journal.usable(ctx); err != nil {
		return nil, err
	}
	text, args := r.sql(limit)
	rows, err := r.journal.pool.Query(ctx, text, args...)
	if err == nil {
		err = each(rows, func() error {
			var e storedEntry
			err := rows.Scan(append([]any{&e.pos}, e.row.fields()...)...)
			page = append(page, e)
			return err
		})
	}
	return page, r.journal.causeOf(ctx, err)
}

// sql returns the query for a page.
func (r *reading) sql(limit int) (string, []any) {
	q := r.query
	args := []any{r.after, r.before, limit}
	var b strings.Builder
	b.WriteString("SELECT f.pos - f.entries + e.n, " + entryColumns + ` FROM flushes f JOIN entries e ON e.flush = f.id
		WHERE f.pos > $1 AND f.pos <= (SELECT min(pos) FROM flushes WHERE pos >= $2 - 1)
		AND f.pos - f.entries + e.n > $1 AND f.pos - f.entries + e.n < $2`)
	and := func(condition string, arg any) {
		args = append(args, arg)
		fmt.Fprintf(&b, " AND "+condition, len(args))
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
	if q.Newest {
		b.WriteString(" ORDER BY f.pos DESC, e.n DESC LIMIT $3")
	} else {
		b.WriteString(" ORDER BY f.pos, e.n LIMIT $3")
	}
	return b.String(), args
}

// pass yields one entry, after an error for each one that is missing before it.
func (r *reading) pass(e storedEntry) bool {
	if !r.gap(e.pos) {
		return false
	}
	if r.query.Newest {
		r.before = e.pos
	} else {
		r.after = e.pos
	}
	r.found++
	return r.yield(e.row.entry(e.pos))
}

// end is the position that follows the last one of the query.
func (r *reading) end() int64 {
	if r.query.Newest {
		return r.after
	}
	return r.before
}

// gap yields an error for each position before pos that has no entry, if the
// query selects all entries. It reports whether the reading goes on.
func (r *reading) gap(pos int64) bool {
	q := r.query
	if q.Session != "" || q.Txn != "" || q.Call != "" || len(q.Kinds) > 0 || len(q.About) > 0 {
		return pos != r.end()
	}
	for (q.Newest && r.before-1 > pos) || (!q.Newest && r.after+1 < pos) {
		missing := r.after + 1
		if q.Newest {
			missing = r.before - 1
			r.before--
		} else {
			r.after++
		}
		r.found++
		if !r.yield(record.Entry{Pos: missing}, fmt.Errorf("%w: entry %d is missing", record.ErrDamaged, missing)) || r.found == q.Limit {
			return false
		}
	}
	return pos != r.end()
}

// Unfinished lists the transactions that have not ended, oldest first.
func (j *Journal) Unfinished(ctx context.Context) (all []journal.Ownership, err error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	rows, err := j.pool.Query(ctx, "SELECT txn, owner FROM txns WHERE NOT ended ORDER BY age")
	if err == nil {
		err = each(rows, func() error {
			var txn []byte
			var o journal.Ownership
			err := rows.Scan(&txn, &o.Owner)
			o.Txn = string(txn)
			all = append(all, o)
			return err
		})
	}
	return all, j.causeOf(ctx, err)
}
