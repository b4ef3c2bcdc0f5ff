package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/journal"
)

// Each batch has the hashes of the tree that its entries complete, in tlog's
// order. So an entry and its part of the tree are stored together, in one row.
// The head of every prefix needs at most as many rows as its size has bits.

// hashReader reads the batch of an entry: nil if there is none.
type hashReader func(pos int64) (*storedBatch, error)

// ReadHashes implements tlog.HashReader.
func (find hashReader) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index < 0 || index > 1<<60 { // beyond the indexes that tlog can split
			return nil, noHash(index)
		}
		level, n := tlog.SplitStoredHashIndex(index)
		pos := (n + 1) << level // the last entry below a subtree completed it
		if pos >= maxPos {
			return nil, noHash(index)
		}
		b, err := find(pos)
		switch {
		case err != nil:
			return nil, err
		case b == nil || pos > b.last():
			return nil, noHash(index)
		}
		if found[i], err = b.hash(pos, level); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func noHash(index int64) error {
	return fmt.Errorf("hash %d of the tree: %w", index, journal.ErrNotFound)
}

// Head returns the tree head over the stored entries.
func (j *Journal) Head(ctx context.Context) (journal.Head, error) {
	if err := j.usable(ctx); err != nil {
		return journal.Head{}, err
	}
	size, err := j.size(ctx)
	if err != nil {
		return journal.Head{}, j.causeOf(ctx, err)
	}
	// The stored hashes of this prefix never change, so this needs no snapshot.
	tree, err := journal.TreeOf(size, j.finder(ctx))
	return tree.Head(), err
}

// Hashes reads stored hashes of the tree.
func (j *Journal) Hashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	return j.finder(ctx).ReadHashes(indexes)
}

const (
	lastBatch    = "SELECT key, n FROM batches ORDER BY key DESC LIMIT 1"
	batchBefore  = "SELECT key, n, data FROM batches WHERE key < ? ORDER BY key DESC LIMIT 1"
	batchesAfter = "SELECT key, n, data FROM batches WHERE key > ? ORDER BY key"
)

// size returns the position of the last entry.
func (j *Journal) size(ctx context.Context) (int64, error) {
	var key batchKey
	var n int64
	err := j.reader.QueryRowContext(ctx, lastBatch).Scan(&key, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return key.pos() + n - 1, err
}

func (j *Journal) finder(ctx context.Context) hashReader {
	return func(pos int64) (*storedBatch, error) {
		if b := j.hashed.Load(); b != nil && b.key.pos() <= pos && pos <= b.last() {
			return b, nil // its leaves and hashes never change
		}
		b, err := j.batchOf(ctx, pos)
		if err != nil {
			return nil, j.causeOf(ctx, err)
		}
		j.hashed.Store(b)
		return b, nil
	}
}

// batchOf returns the batch that has the entry at a position, if there is one.
func (j *Journal) batchOf(ctx context.Context, pos int64) (*storedBatch, error) {
	stmt, err := j.prepared(batchBefore)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, int64(keyAt(pos+1)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err below returns the error
	if !rows.Next() {
		return nil, rows.Err()
	}
	return scanBatch(rows)
}
