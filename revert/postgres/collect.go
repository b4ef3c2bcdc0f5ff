package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// unnamedMaxAge is how long content stays that no entry names yet, if its
// opening lives: content is stored first and named later.
const unnamedMaxAge = time.Hour

// CollectGarbage deletes the content that no entry names, and lets the server
// write its tables again without deleted bytes if no other opening uses the
// journal. It looks at all content, or if gone is not nil at what gone lists.
// The write-ahead log of the server, its archives, standbys and backups keep
// their copies.
func (j *Journal) CollectGarbage(ctx context.Context, gone []effect.BlobRef) (out journal.GCReport, err error) {
	if err := j.writable(ctx); err != nil {
		return out, err
	}
	c := gcRun{journal: j, whole: gone == nil, named: map[string]bool{}}
	for _, ref := range gone {
		c.gone = append(c.gone, packDigest(ref.Digest))
	}
	before, err := c.size(ctx)
	if err != nil {
		return out, j.causeOf(ctx, err)
	}
	if err := c.readNames(ctx); err != nil {
		return out, err
	}
	if err := c.drop(ctx); err != nil {
		return out, j.causeOf(ctx, err)
	}
	if c.out.Waiting, err = c.scrub(ctx); err != nil {
		return out, j.causeOf(ctx, err)
	}
	if c.out.Size, err = c.size(ctx); err != nil {
		return out, j.causeOf(ctx, err)
	}
	c.out.Freed = max(before-c.out.Size, 0)
	return c.out, nil
}

type gcRun struct {
	journal *Journal
	whole   bool
	gone    [][]byte        // digests that the caller names: deleted even if they are new
	named   map[string]bool // digests that entries name, as stored
	pos     int64           // position up to which named is complete
	out     journal.GCReport
}

// readNames reads which content the entries name, from where it stopped.
func (c *gcRun) readNames(ctx context.Context) error {
	head, err := c.journal.Head(ctx)
	if err != nil {
		return err
	}
	err = journal.Blobs(ctx, c.journal, c.pos, func(_ int64, ref effect.BlobRef) error {
		c.named[string(packDigest(ref.Digest))] = true
		return nil
	})
	c.pos = head.Size
	return err
}

// drop deletes content that no entry names. Its lock keeps appends away that
// name content, and it reads the newest entries under that lock.
func (c *gcRun) drop(ctx context.Context) error {
	j := c.journal
	return pgx.BeginFunc(ctx, j.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, $2)", j.class, collectLock); err != nil {
			return err
		}
		if err := c.readNames(ctx); err != nil {
			return err
		}
		ids, err := c.candidates(ctx, tx)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, "DELETE FROM blobs WHERE id = ANY($1::bigint[])", ids)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM chunks WHERE blob = ANY($1::bigint[])", ids); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE scrub SET deleted = deleted + 1")
		return err
	})
}

// candidates returns the content to delete. What an opening that lives has
// stored and no batch has named stays for a while, except what the caller names.
// So does what is being stored.
func (c *gcRun) candidates(ctx context.Context, tx pgx.Tx) (ids []int64, err error) {
	rows, err := tx.Query(ctx, `SELECT id, coalesce(digest, ''), size, digest IS NULL FROM blobs b
		WHERE ($1 OR digest = ANY($2::bytea[]))
		AND (named OR digest = ANY($2::bytea[]) OR stored < now() - $3::interval OR NOT `+alive("b.owner", "$4")+`)`,
		c.whole, c.gone, unnamedMaxAge, c.journal.class)
	if err != nil {
		return nil, err
	}
	err = each(rows, func() error {
		var id, size int64
		var digest []byte
		var unfinished bool
		if err := rows.Scan(&id, &digest, &size, &unfinished); err != nil {
			return err
		}
		if c.named[string(digest)] {
			return nil
		}
		ids = append(ids, id)
		if !unfinished {
			c.out.Blobs, c.out.Bytes = c.out.Blobs+1, c.out.Bytes+size
		}
		return nil
	})
	return ids, err
}

// alive is a condition: an owner holds its lock, whose keys are class and id. It
// serves where a wrong answer only delays something.
func alive(id, class string) string {
	return `EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND l.classid::bigint = ` + class + `::bigint & 4294967295 AND l.objid::bigint = ` + id + ` AND l.mode = 'ExclusiveLock')`
}

// size returns the size of the tables with their indexes.
func (c *gcRun) size(ctx context.Context) (n int64, err error) {
	err = c.journal.pool.QueryRow(ctx, `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`, c.journal.schema).Scan(&n)
	return n, err
}

// scrub rewrites the tables if they hold deleted bytes: PostgreSQL only marks a
// deleted row. It returns why they may remain.
func (c *gcRun) scrub(ctx context.Context) (waiting string, err error) {
	j := c.journal
	var deleted, scrubbed int64
	if err := j.pool.QueryRow(ctx, "SELECT deleted, scrubbed FROM scrub").Scan(&deleted, &scrubbed); err != nil || deleted == scrubbed {
		return "", err
	}
	var others int
	var snapshots bool
	err = j.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM owners o WHERE o.ended IS NULL AND o.id <> $1 AND `+alive("o.id", "$2")+`),
		EXISTS (SELECT FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend')
		OR EXISTS (SELECT FROM pg_prepared_xacts WHERE database = current_database()) OR EXISTS (SELECT FROM pg_replication_slots WHERE xmin IS NOT NULL)`,
		j.id, j.class).Scan(&others, &snapshots)
	switch {
	case err != nil:
		return "", err
	case others > 0:
		return "other openings use the journal, and its tables may still contain erased data", nil
	case snapshots:
		return "other sessions of the database have old snapshots, and its tables may still contain erased data", nil
	}
	err = j.vacuum(ctx, deleted)
	if code := codeOf(err); code == codeNoRights || code == codeLockTimeout || errors.Is(err, errNotWritten) {
		return "the tables could not be written again, and may still contain erased data: " + err.Error(), nil
	}
	return "", err
}

var errNotWritten = errors.New("the server did not write it again: the role must own the tables, so collect as their owner")

// vacuum writes the tables again, without deleted rows. For a role that may not,
// the server only warns, so a new file is what tells that it did.
func (j *Journal) vacuum(ctx context.Context, deleted int64) error {
	conn, err := j.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	for _, table := range []string{"entries", "blobs", "chunks", "claims", "requests"} {
		var before, after uint32
		name := pgx.Identifier{j.schema, table}.Sanitize()
		if err := conn.QueryRow(ctx, "SELECT pg_relation_filenode($1)", name).Scan(&before); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "VACUUM (FULL) "+name); err != nil {
			return fmt.Errorf("vacuum %s: %w", table, err)
		}
		if err := conn.QueryRow(ctx, "SELECT pg_relation_filenode($1)", name).Scan(&after); err != nil {
			return err
		}
		if before == after {
			return fmt.Errorf("table %s: %w", table, errNotWritten)
		}
	}
	_, err = conn.Exec(ctx, "UPDATE scrub SET scrubbed = $1", deleted)
	return err
}
