package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Each entry's row has the hashes of the tree that the entry completes, in
// tlog's order. So an entry and its part of the tree are stored together, in
// one row. The head of every prefix needs at most as many rows as its size has
// bits.

// hashReader reads length bytes of the hashes in a row, from an offset counted
// from 1.
type hashReader func(data *[]byte, pos, offset, length int64) (found bool, err error)

// ReadHashes implements tlog.HashReader.
func (find hashReader) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index < 0 || index > 1<<60 { // beyond the indexes that tlog can split
			return nil, noHash(index)
		}
		level, n := tlog.SplitStoredHashIndex(index)
		var data []byte
		// The last entry below a subtree completed it.
		there, err := find(&data, (n+1)<<level, int64(level*tlog.HashSize+1), tlog.HashSize)
		switch {
		case err != nil:
			return nil, err
		case !there:
			return nil, noHash(index)
		case len(data) != tlog.HashSize:
			return nil, fmt.Errorf("%w: entry %d lacks hashes of the tree", record.ErrDamaged, (n+1)<<level)
		}
		found[i] = tlog.Hash(data)
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

// size returns the position of the last entry.
func (j *Journal) size(ctx context.Context) (n int64, err error) {
	err = j.reader.QueryRowContext(ctx, lastPos).Scan(&n)
	return n, err
}

const (
	lastPos  = "SELECT coalesce(max(pos), 0) FROM entries"
	findHash = "SELECT substr(tree, ?2, ?3) FROM entries WHERE pos = ?1"
)

func (j *Journal) finder(ctx context.Context) hashReader {
	return func(data *[]byte, pos, offset, length int64) (bool, error) {
		err := j.reader.QueryRowContext(ctx, findHash, pos, offset, length).Scan(data)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		if err != nil {
			return false, j.causeOf(ctx, err)
		}
		return true, nil
	}
}

// catchUp adds the stored entries of other processes to the writer's tree:
// their entries have the next positions. Inside a writing transaction the tree
// then stays current until the end.
func (w *writer) catchUp() error {
	var size int64
	if _, err := w.find(stmtLast, &size); err != nil {
		return err
	}
	if size == w.tree.Size() {
		return nil
	}
	tree, err := journal.TreeOf(size, hashReader(func(data *[]byte, pos, offset, length int64) (bool, error) {
		return w.find(stmtHash, data, pos, offset, length)
	}))
	if err == nil {
		w.tree = tree
	}
	return err
}

// row returns the columns of the next entry, without its salt and body, and the
// tree with it.
func (w *writer) row(e record.Entry) ([]any, journal.Tree) {
	tree, whole := w.tree.Add(e.Leaf)
	hashes := make([]byte, 0, len(whole)*tlog.HashSize)
	for _, h := range whole {
		hashes = append(hashes, h[:]...)
	}
	h := e.Header
	return []any{tree.Size(), string(h.Kind), h.Session, h.Txn, h.Call, e.Head, stored(e.Leaf), hashes}, tree
}
