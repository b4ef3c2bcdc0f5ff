package sqlite

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/revert/journal"
)

// catchUp reads the batches that other processes stored since the last
// transaction of this writer: they have the next keys. Inside a writing
// transaction the writer then stays current until the end.
func (w *writer) catchUp() error {
	var version int64
	if _, err := w.find(stmtVersion, &version); err != nil || w.current && version == w.version {
		return err
	}
	w.version = version
	var indexed, last batchKey
	var tabled, claimed int64
	err := w.stmts[stmtState].QueryRowContext(context.Background()).Scan(&indexed, &tabled, &last, &claimed)
	if err != nil {
		w.current = false
		return err
	}
	from := w.last
	//mutant:check
	if !w.current || indexed != w.indexed || tabled != w.tabled {
		from, w.indexed, w.later, w.open = indexed, indexed, unindexed{}, nil
		w.claimed, w.tabled = tabled, tabled
	}
	w.current = false // unless all of it can be read
	if err := w.readFrom(from); err != nil {
		return err
	}
	if err := w.readClaims(); err != nil {
		return err
	}
	before := w.last
	if w.last, w.count, err = w.lastBatch(); err != nil {
		return err
	}
	if w.last != before {
		w.foreign.found.Add(1)
	}
	if size := w.last.pos() + w.count - 1; w.last > 0 && size != w.tree.Size() {
		if w.tree, err = journal.TreeOf(size, w.hashes()); err != nil {
			return err
		}
	}
	w.current = true
	return nil
}

// readFrom reads the batches after a key.
func (w *writer) readFrom(after batchKey) error {
	rows, err := w.stmts[stmtUnindexed].QueryContext(context.Background(), int64(after))
	if err != nil {
		return err
	}
	for rows.Next() {
		b, err := scanBatch(rows)
		if err == nil {
			err = b.bad
		}
		if err != nil {
			return errors.Join(err, rows.Close())
		}
		w.later.add(b.key, b.ops, b.places(), b.size)
	}
	return errors.Join(rows.Err(), rows.Close())
}

// readClaims reads the new claims, after the batches that may have ended their
// transactions.
func (w *writer) readClaims() error {
	rows, err := w.stmts[stmtNewClaims].QueryContext(context.Background(), w.claimed)
	if err != nil {
		return err
	}
	for rows.Next() {
		c, err := scanClaim(rows)
		if err != nil {
			return errors.Join(err, rows.Close())
		}
		w.claimed = c.id
		w.later.claim(c)
	}
	return errors.Join(rows.Err(), rows.Close())
}

func (w *writer) lastBatch() (key batchKey, n int64, err error) {
	_, err = w.findAll(stmtLast, nil, &key, &n)
	return key, n, err
}

// hashes reads the stored hashes of the tree.
func (w *writer) hashes() hashReader {
	return func(pos int64) (b *storedBatch, err error) {
		var key batchKey
		var n int64
		var data []byte
		if found, err := w.findAll(stmtBatchOf, []any{int64(keyAt(pos + 1))}, &key, &n, &data); !found || err != nil {
			return nil, err
		}
		return unpack(key, n, data), nil
	}
}

func (w *writer) nextKey() (batchKey, error) {
	if w.last == 0 {
		return keyAt(1), nil
	}
	return w.last.next(w.count)
}
