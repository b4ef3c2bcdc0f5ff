package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// catchUp gives a position to everything that was acknowledged before, and
// returns the tree head. A role that may only read sees what the sequencer has
// reached.
func (j *Journal) catchUp(ctx context.Context) (h journal.Head, err error) {
	if err := j.usable(ctx); err != nil {
		return h, err
	}
	seen := j.seen.Load() // before the head is read: others read later ones meanwhile
	waiting, err := j.readHead(ctx, &h)
	if err != nil {
		return h, err
	}
	if waiting {
		err = j.again(ctx, func() error { return j.sequenceAll(ctx, j.pool) })
		if code := codeOf(err); err != nil && code != codeNoRights && code != codeReadOnly {
			return h, err
		}
		if _, err := j.readHead(ctx, &h); err != nil {
			return h, err
		}
	}
	if h.Size < seen {
		return h, fmt.Errorf("journal: it had %d entries and has %d: %w", seen, h.Size, ErrLost)
	}
	for seen < h.Size && !j.seen.CompareAndSwap(seen, h.Size) {
		seen = j.seen.Load()
	}
	return h, nil
}

// readHead reads the tree head, and whether entries have no position yet.
func (j *Journal) readHead(ctx context.Context, h *journal.Head) (waiting bool, err error) {
	err = j.again(ctx, func() error {
		return j.pool.QueryRow(ctx, "SELECT size, root, EXISTS (SELECT FROM flushes WHERE pos IS NULL AND entries > 0) FROM journal").Scan(&h.Size, &h.Root, &waiting)
	})
	return waiting, err
}

// Head returns the tree head over all entries that were acknowledged before.
func (j *Journal) Head(ctx context.Context) (journal.Head, error) { return j.catchUp(ctx) }

// Hashes returns stored hashes of the tree.
func (j *Journal) Hashes(ctx context.Context, indexes []int64) (found []tlog.Hash, err error) {
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
	err = j.again(ctx, func() error {
		found, err = storedHashes(ctx, j.pool, indexes)
		return err
	})
	if errors.Is(err, journal.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", record.ErrDamaged, err)
	}
	return found, err
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
		newReading(j, q, head.Size, yield).run(ctx)
	}
}

// Unfinished lists the transactions that have not ended, oldest first.
func (j *Journal) Unfinished(ctx context.Context) (all []journal.Ownership, err error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	err = j.again(ctx, func() error {
		all = nil
		return eachRow(ctx, j.pool, func(rows pgx.Rows) error {
			var txn []byte
			var o journal.Ownership
			err := rows.Scan(&txn, &o.Owner)
			o.Txn = string(txn)
			all = append(all, o)
			return err
		}, "SELECT txn, owner FROM txns WHERE NOT ended ORDER BY age")
	})
	return all, err
}

// FindIDs returns the first IDs of transactions and of calls that begin with a
// text, for journal.FindIDs. It reads the index.
func (j *Journal) FindIDs(ctx context.Context, prefix string, most int) (found []string, err error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	err = j.again(ctx, func() error {
		found = nil
		for _, column := range []string{"txn", "call"} {
			from, end := []byte(prefix), append([]byte(prefix), 0xff)
			for range most { // an ID has many rows
				var id []byte
				query := "SELECT " + column + " FROM entries WHERE " + column + " <> '' AND " + column + " >= $1 AND " + column + " < $2 ORDER BY " + column + " LIMIT 1"
				err := j.pool.QueryRow(ctx, query, from, end).Scan(&id)
				if errors.Is(err, pgx.ErrNoRows) {
					break
				}
				if err != nil {
					return err
				}
				from, found = append(bytes.Clone(id), 0), append(found, string(id))
			}
		}
		return nil
	})
	return found, err
}
