package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// FsckReport is the result of Fsck.
type FsckReport struct {
	revert.FsckReport
	Alive    int   `json:"alive"`    // other openings that live
	Unnamed  int64 `json:"unnamed"`  // blobs that no entry names: left by a crash, or not named yet
	Leftover int64 `json:"leftover"` // unfinished blobs; a collector removes those of dead openings
	Requests int64 `json:"requests"` // damaged requests between nodes
}

// Fsck checks a journal. It runs revert.Fsck, and checks what only this store
// can check: that each flush has its entries, that claims belong to unfinished
// transactions, that chunks belong to content, and that requests between nodes
// fit the journal. It returns record.ErrDamaged if there was any problem. Without a head kept elsewhere it cannot detect that
// the database is an older copy of itself.
func Fsck(ctx context.Context, j *Journal, o revert.FsckOptions) (FsckReport, error) {
	f := fsck{journal: j, options: o, named: map[string]bool{}}
	named := o.Named
	o.Named = func(ref effect.BlobRef) error {
		f.named[string(packDigest(ref.Digest))] = true
		if named != nil {
			return named(ref)
		}
		return nil
	}
	var err error
	if f.report.FsckReport, err = revert.Fsck(ctx, j, o); err != nil && f.report.Problems == 0 {
		return f.report, err
	}
	for _, part := range []func(context.Context) error{f.flushes, f.claims, f.chunks, f.blobs, f.owners, f.requests} {
		if err := part(ctx); err != nil {
			return f.report, j.causeOf(ctx, err)
		}
	}
	return f.report, f.report.Err()
}

type fsck struct {
	journal *Journal
	options revert.FsckOptions
	report  FsckReport
	named   map[string]bool // digests, as stored
}

func (f *fsck) problem(pos int64, format string, args ...any) {
	f.report.Problems++
	if f.options.Found != nil {
		f.options.Found(revert.Problem{Pos: pos, What: fmt.Sprintf(format, args...)})
	}
}

func (f *fsck) each(ctx context.Context, query string, fn func(rows pgx.Rows) error) error {
	rows, err := f.journal.pool.Query(ctx, query)
	if err != nil {
		return err
	}
	return each(rows, func() error { return fn(rows) })
}

func (f *fsck) flushes(ctx context.Context) error {
	return f.each(ctx, `SELECT coalesce(f.id, e.flush), coalesce(f.pos - f.entries + 1, 0), coalesce(f.entries, 0), coalesce(e.n, 0)
		FROM flushes f FULL JOIN (SELECT flush, count(*) AS n FROM entries GROUP BY flush) e ON e.flush = f.id
		WHERE coalesce(f.entries, -1) <> coalesce(e.n, 0) ORDER BY 1`, func(rows pgx.Rows) error {
		var id, pos, want, have int64
		err := rows.Scan(&id, &pos, &want, &have)
		f.problem(pos, "flush %d has %d entries, and says %d", id, have, want)
		return err
	})
}

func (f *fsck) claims(ctx context.Context) error {
	return f.each(ctx, `SELECT c.resource, c.txn, c.id = sha256(c.resource) FROM claims c LEFT JOIN txns t ON t.txn = c.txn
		WHERE t.txn IS NULL OR t.ended OR c.id <> sha256(c.resource) ORDER BY c.id`, func(rows pgx.Rows) error {
		var resource, txn []byte
		var right bool
		err := rows.Scan(&resource, &txn, &right)
		if right {
			f.problem(0, "%s is held by transaction %s, which has ended or never was", resource, txn)
		} else {
			f.problem(0, "the claim of %s is stored under the key of another resource", resource)
		}
		return err
	})
}

func (f *fsck) chunks(ctx context.Context) error {
	return f.each(ctx, `SELECT c.blob, count(*) FROM chunks c LEFT JOIN blobs b ON b.id = c.blob
		WHERE b.id IS NULL OR b.data IS NOT NULL GROUP BY c.blob ORDER BY 1`, func(rows pgx.Rows) error {
		var blob, n int64
		err := rows.Scan(&blob, &n)
		f.problem(0, "%d chunks belong to content %d, which does not exist or has none", n, blob)
		return err
	})
}

func (f *fsck) blobs(ctx context.Context) error {
	return f.each(ctx, "SELECT digest FROM blobs", func(rows pgx.Rows) error {
		var digest []byte
		err := rows.Scan(&digest)
		switch {
		case digest == nil:
			f.report.Leftover++
		case !f.named[string(digest)]:
			f.report.Unnamed++
		}
		return err
	})
}

func (f *fsck) owners(ctx context.Context) error {
	j := f.journal
	return j.pool.QueryRow(ctx, "SELECT count(*) FROM owners o WHERE o.ended IS NULL AND o.id <> $1 AND "+alive("o.id", "$2"), j.id, j.class).Scan(&f.report.Alive)
}

// requests checks all requests, also those between other nodes.
func (f *fsck) requests(ctx context.Context) error {
	last, more := int64(0), true
	for more {
		var some []journal.Request
		more = false
		err := f.each(ctx, fmt.Sprintf("SELECT %s FROM requests WHERE id > %d ORDER BY id LIMIT 100", requestColumns, last), func(rows pgx.Rows) error {
			r, err := scanRequest(rows)
			some, last, more = append(some, r), r.ID, true
			return err
		})
		for _, r := range some {
			if err == nil {
				err = f.request(ctx, r)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *fsck) request(ctx context.Context, r journal.Request) error {
	err := (&revert.Reverter{Journal: f.journal}).CheckAsked(ctx, r)
	if !errors.Is(err, record.ErrDamaged) {
		return err
	}
	f.report.Requests++
	f.problem(0, "request %d, asked of node %q by node %q: %s", r.ID, r.Node, r.From, err)
	return nil
}
