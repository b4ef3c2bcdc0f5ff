package sqlite

import (
	"context"
	"errors"
)

// A row that lost its bodies leaves a hole in its page, because nothing else
// takes that place. Storing the row again makes SQLite join the page with its
// neighbors. This moves the rows of several pages, and a moved row leaves a copy
// of itself between others, which no later erasure finds. So a row is stored
// again only if no row near it has a body that could still be erased.

// compactSpan is how many bytes of rows on each side must have no such body: the
// rest of the row's page, the neighbor with which SQLite joins it, the next one
// if the row no longer fits when it is inserted, and one more. The part of a
// long row that is in its page has at least minLocal bytes.
const (
	pageSize    = 4096
	compactSpan = 4 * pageSize
	minLocal    = 489
	compactStep = 32
)

// compact looks at each row that lost bodies, once, in steps between the batches
// of other callers. A row that must stay where it is keeps its hole, until a
// neighbor is stored again.
func (c *gcRun) compact(ctx context.Context) error {
	for more := true; more; {
		err := c.j.exclusively(ctx, func(w *writer) (err error) {
			if err := w.begin(); err != nil {
				return err
			}
			if more, err = w.compactSome(); err != nil {
				return err
			}
			_, err = w.run(stmtCommit)
			return err
		})
		if codeOf(err) == codeFull { // the holes stay until there is space
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compactSome looks at the next rows that lost bodies.
func (w *writer) compactSome() (more bool, err error) {
	keys, err := w.keysIn(stmtHoles, holes, compactStep)
	for _, key := range keys {
		if err == nil {
			err = w.compactRow(key)
		}
		if err == nil {
			_, err = w.run(stmtNoHole, holes, int64(key))
		}
	}
	return len(keys) == compactStep, err
}

// compactRow stores a row again, if that leaves no copy of a body.
func (w *writer) compactRow(key batchKey) error {
	var n int64
	var data []byte
	if found, err := w.findAll(stmtBatchAt, []any{int64(key)}, &n, &data); err != nil || !found {
		return err
	}
	if unpack(key, n, data).erasable() {
		return nil
	}
	if alone, err := w.alone(key); err != nil || !alone {
		return err
	}
	if _, err := w.run(stmtDropBatch, int64(key)); err != nil {
		return err
	}
	_, err := w.run(stmtBatch, int64(key), n, data)
	return err
}

// alone reports whether no row near a key has a body that could be erased.
func (w *writer) alone(key batchKey) (bool, error) {
	for _, stmt := range []int{stmtRowsBefore, stmtRowsAfter} {
		rows, err := w.stmts[stmt].QueryContext(context.Background(), int64(key))
		if err != nil {
			return false, err
		}
		erasable, size := false, 0
		for size < compactSpan && !erasable && rows.Next() {
			b, err := scanBatch(rows)
			if err != nil {
				return false, errors.Join(err, rows.Close())
			}
			erasable = b.erasable()
			if size += b.size; b.size > pageSize-minLocal { // a part of it is on other pages
				size += minLocal - b.size
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || erasable {
			return false, err
		}
	}
	return true, nil
}

// erasable reports whether an erasure could still destroy a body of the batch.
func (b *storedBatch) erasable() bool {
	if b.bad != nil || b.lost != nil {
		return true
	}
	for _, p := range b.entries {
		if p.kind.Erasable() && len(p.erased) == 0 {
			return true
		}
	}
	return false
}
