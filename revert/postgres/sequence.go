package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

const (
	sequenceEvery = 200 * time.Millisecond
	electEvery    = time.Second
	stepFlushes   = 256
)

// sequence gives positions to committed flushes, if this opening is the
// sequencer of the journal. A session lock elects one opening. A reader that
// finds flushes without a position does the same work itself, so a missing
// sequencer delays nothing and the lock only saves work.
func (j *Journal) sequence() {
	defer close(j.sequenced)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-j.stop
		cancel()
	}()
	for {
		if j.appended.Load() {
			j.lead(ctx)
		}
		if !sleep(ctx, electEvery) {
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// lead sequences until the connection or the opening ends, if no other opening
// does.
func (j *Journal) lead(ctx context.Context) {
	s, err := j.connect(ctx)
	if err != nil {
		return
	}
	conn := s.conn
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for {
		var elected bool
		if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, $2)", j.class, sequencerLock).Scan(&elected); err != nil {
			return
		}
		if elected {
			break
		}
		if !sleep(ctx, min(electEvery, j.lease/3)) {
			return
		}
	}
	for {
		if err := j.sequenceAll(ctx, conn); err != nil { // a reader sees the same error, and returns it
			return
		}
		if !sleep(ctx, min(sequenceEvery, j.lease/3)) {
			return
		}
	}
}

// beginner begins transactions: a connection or a pool.
type beginner interface {
	querier
	Begin(ctx context.Context) (pgx.Tx, error)
}

// sequenceAll gives a position to every flush that is committed now.
func (j *Journal) sequenceAll(ctx context.Context, c beginner) error {
	for {
		var waiting bool
		if err := c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM flushes WHERE pos IS NULL AND entries > 0)").Scan(&waiting); err != nil || !waiting {
			return err
		}
		var n int
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) (err error) {
			n, err = place(ctx, tx)
			return err
		})
		if err != nil || n < stepFlushes {
			return err
		}
	}
}

// newFlush is a committed flush without a position.
type newFlush struct {
	id      int64
	entries int64
}

// place gives positions to the next flushes, and returns their number. The row
// of the journal excludes other sequencers, and is locked before the flushes are
// read. So a flush that was acknowledged before another one began has the lower
// position: it has the lower id, and whoever sees the later one sees it too. A
// flush that commits late is not passed over, as it stays without a position.
func place(ctx context.Context, tx pgx.Tx) (int, error) {
	var size int64
	if err := tx.QueryRow(ctx, "SELECT size FROM journal FOR UPDATE").Scan(&size); err != nil {
		return 0, err
	}
	flushes, leaves, err := unplaced(ctx, tx)
	if err != nil || len(flushes) == 0 {
		return 0, err
	}
	tree, err := journal.TreeOf(size, tlog.HashReaderFunc(func(at []int64) ([]tlog.Hash, error) { return storedHashes(ctx, tx, at) }))
	if err != nil {
		return 0, fmt.Errorf("tree of %d entries: %w", size, err)
	}
	ids, ends, starts, hashes := make([]int64, len(flushes)), make([]int64, len(flushes)), make([]int64, len(flushes)), make([][]byte, len(flushes))
	for i, f := range flushes {
		ids[i], starts[i] = f.id, tlog.StoredHashIndex(0, tree.Size())
		for _, leaf := range leaves[:f.entries] {
			var whole []tlog.Hash
			tree, whole = tree.Add(leaf)
			for _, h := range whole {
				hashes[i] = append(hashes[i], h[:]...)
			}
		}
		leaves, ends[i] = leaves[f.entries:], tree.Size()
	}
	if _, err := tx.Exec(ctx, `UPDATE flushes f SET pos = u.pos, hash_at = u.hash_at, hashes = u.hashes
		FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[]) AS u (id, pos, hash_at, hashes) WHERE f.id = u.id`, ids, ends, starts, hashes); err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, "UPDATE journal SET size = $1, root = $2", tree.Size(), tree.Head().Root)
	return len(flushes), err
}

// unplaced returns the next flushes without a position, and their leaves.
func unplaced(ctx context.Context, tx pgx.Tx) (flushes []newFlush, leaves []string, err error) {
	rows, err := tx.Query(ctx, "SELECT id, entries FROM flushes WHERE pos IS NULL AND entries > 0 ORDER BY id LIMIT $1", stepFlushes)
	if err != nil {
		return nil, nil, err
	}
	var ids []int64
	count := int64(0)
	err = each(rows, func() error {
		var f newFlush
		err := rows.Scan(&f.id, &f.entries)
		flushes, ids, count = append(flushes, f), append(ids, f.id), count+f.entries
		return err
	})
	if err != nil || len(flushes) == 0 {
		return nil, nil, err
	}
	rows, err = tx.Query(ctx, "SELECT leaf FROM entries WHERE flush = ANY($1::bigint[]) ORDER BY flush, n", ids)
	if err != nil {
		return nil, nil, err
	}
	err = each(rows, func() error {
		var leaf []byte
		err := rows.Scan(&leaf)
		leaves = append(leaves, unpackDigest(leaf))
		return err
	})
	if err == nil && int64(len(leaves)) != count {
		err = fmt.Errorf("%w: the newest appends have %d entries, and %d of them are there", record.ErrDamaged, count, len(leaves))
	}
	return flushes, leaves, err
}

// storedHashes reads hashes of the tree.
func storedHashes(ctx context.Context, q querier, at []int64) ([]tlog.Hash, error) {
	if len(at) == 0 {
		return nil, nil
	}
	rows, err := q.Query(ctx, `SELECT substring(f.hashes FROM (a.i - f.hash_at)::int * 32 + 1 FOR 32)
		FROM unnest($1::bigint[]) WITH ORDINALITY AS a (i, n)
		LEFT JOIN LATERAL (SELECT hash_at, hashes FROM flushes WHERE hash_at <= a.i ORDER BY hash_at DESC LIMIT 1) AS f ON true
		ORDER BY a.n`, at)
	if err != nil {
		return nil, err
	}
	found := make([]tlog.Hash, 0, len(at))
	err = each(rows, func() error {
		var h []byte
		if err := rows.Scan(&h); err != nil {
			return err
		}
		if len(h) != tlog.HashSize {
			return fmt.Errorf("hash %d of the tree: %w", at[len(found)], journal.ErrNotFound)
		}
		found = append(found, tlog.Hash(h))
		return nil
	})
	return found, err
}
