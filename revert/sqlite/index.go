package sqlite

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
)

// The derived tables follow when so many batches, or bytes of them, are not in
// them: batches that follow each other share pages there. A process that opens
// the journal reads that much, if no other one has closed it before.
const (
	indexBatches = 512
	indexBytes   = 1 << 19
	indexAtClose = 32
)

// placesAtOnce is the number of rows that one statement stores.
const placesAtOnce = 8

// unindexed is what the derived tables do not have yet.
type unindexed struct {
	ledger  ledger
	places  []placeRow
	batches int
	bytes   int
	claims  int
	erased  bool // nothing may be left of the claims of an erased call
}

// placeRow is a row of the table places.
type placeRow struct {
	name  string
	key   batchKey
	kinds int64
}

func (u *unindexed) full() bool {
	return u.batches >= indexBatches || u.bytes >= indexBytes || u.claims >= indexBatches || u.erased
}

func (u *unindexed) add(key batchKey, ops batchOps, places map[string]int64, size int) {
	u.ledger.add(ops)
	for name, kinds := range places {
		u.places = append(u.places, placeRow{name, key, kinds})
	}
	u.batches, u.bytes = u.batches+1, u.bytes+size
}

// index updates the derived tables, in a transaction of its own: no caller waits
// for it to be synced. It takes nothing back that was stored: if it fails, a
// later append or opening repeats it.
func (j *Journal) index(w *writer) {
	if !w.later.full() {
		return
	}
	err := w.setSync(false)
	if err == nil {
		err = w.index()
	}
	switch codeOf(err) {
	case codeBusy, codeFull:
		_, _ = w.run(stmtRollback) // there may be none
	default:
		if err != nil {
			_ = j.abandon(err) // the next append reports a broken disk
		}
	}
}

// indexAtClose spares the next opening to read what this one wrote. It waits for
// nobody.
func (j *Journal) indexAtClose() {
	if w := j.writer; w != nil && w.current && w.later.batches >= indexAtClose && j.failed.Load() == nil && w.setSync(false) == nil {
		_ = w.index() // otherwise a later append does it
	}
}

func (w *writer) index() error {
	if err := w.begin(); err != nil {
		return err
	}
	for _, step := range []func() error{w.indexTxns, w.indexClaims, w.indexPlaces} {
		if err := step(); err != nil {
			return err
		}
	}
	if _, err := w.run(stmtIndexed, int64(w.last), w.claimed); err != nil {
		return err
	}
	if _, err := w.run(stmtDropNew); err != nil {
		return err
	}
	if _, err := w.run(stmtCommit); err != nil {
		return err
	}
	for id, t := range w.later.ledger.txns {
		if t.ended {
			delete(w.open, id)
		} else if t.owner != "" {
			w.keepOpen(id, t.owner)
		}
	}
	w.indexed, w.tabled, w.later = w.last, w.claimed, unindexed{}
	return nil
}

func (w *writer) indexTxns() error {
	for _, id := range w.later.ledger.order {
		t := w.later.ledger.txns[id]
		if _, err := w.run(stmtTxnRow, id, t.owner, t.ended); err != nil {
			return err
		}
		if t.ended && !t.begun { // the table may have claims of it
			if _, err := w.run(stmtRelease, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) indexClaims() error {
	claims := w.later.ledger.claims
	for _, resource := range slices.Sorted(maps.Keys(claims)) {
		if _, err := w.run(stmtClaim, resource, claims[resource]); err != nil {
			return err
		}
	}
	return nil
}

// indexPlaces stores the places in the order of the table, so that neighbors
// are written together.
func (w *writer) indexPlaces() error {
	all := w.later.places
	slices.SortFunc(all, func(a, b placeRow) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.key, b.key)) })
	for len(all) > 0 {
		n, stmt := 1, stmtPlace
		if len(all) >= placesAtOnce {
			n, stmt = placesAtOnce, stmtPlacesAtOnce
		}
		var args []any
		for _, p := range all[:n] {
			args = append(args, p.name, int64(p.key), p.kinds)
		}
		if _, err := w.run(stmt, args...); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// keysOf returns the batches with entries of a place, oldest first.
func (w *writer) keysOf(name string) (keys []batchKey, err error) {
	keys, err = w.keysIn(stmtPlaces, name)
	for _, p := range w.later.places {
		if p.name == name {
			keys = append(keys, p.key)
		}
	}
	return keys, err
}

// keysIn returns the keys that a statement finds.
func (w *writer) keysIn(stmt int, args ...any) (keys []batchKey, err error) {
	rows, err := w.stmts[stmt].QueryContext(context.Background(), args...)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var key batchKey
		if err := rows.Scan(&key); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		keys = append(keys, key)
	}
	return keys, errors.Join(rows.Err(), rows.Close())
}
