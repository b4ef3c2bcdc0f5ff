package sqlite

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// mayErase refuses to erase what cannot be read: the digests of the bodies must
// stay.
func (w *writer) mayErase(b journal.Batch) (refused, err error) {
	for _, call := range b.Erase {
		err := w.eachBatch(call, func(*storedBatch, []byte) error { return nil })
		if errors.Is(err, record.ErrDamaged) && codeOf(err) == 0 { // a row, not the database
			return fmt.Errorf("erase %s: %w", call, err), nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// erase destroys bodies and salts and keeps the digests of the bodies. SQLite
// overwrites the freed bytes in pages with zeros (secure_delete). Copies in the
// write-ahead log remain until CollectGarbage empties it. Readers that keep
// batches in memory see the number of erasures.
func (w *writer) erase(calls []string) error {
	for _, call := range calls {
		if err := w.eachBatch(call, func(b *storedBatch, data []byte) error { return w.eraseIn(b, data, call) }); err != nil {
			return fmt.Errorf("erase %s: %w", call, err)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	w.later.erased = true
	_, err := w.run(stmtErasure)
	return err
}

// eachBatch calls fn with each batch of a call and its row. All entries of the
// call in it are sound.
func (w *writer) eachBatch(call string, fn func(b *storedBatch, data []byte) error) error {
	keys, err := w.keysOf(placeOf(byCall, call))
	if err != nil {
		return err
	}
	for _, key := range keys {
		var n int64
		var data []byte
		found, err := w.findAll(stmtBatchAt, []any{int64(key)}, &n, &data)
		if err != nil {
			return err
		}
		b := unpack(key, n, data) // damaged, if it is not found
		if !found || b.bad != nil || b.lost != nil {
			return cmp.Or(b.bad, b.lost)
		}
		for i, p := range b.entries {
			if _, err := b.checked(i); p.call == call && err != nil {
				return err
			}
		}
		if err := fn(b, data); err != nil {
			return err
		}
	}
	return nil
}

// eraseIn erases the bodies of a call in one row.
func (w *writer) eraseIn(b *storedBatch, data []byte, call string) error {
	for i, p := range b.entries {
		if p.call != call || !p.kind.Erasable() || len(p.erased) > 0 {
			continue
		}
		b.entries[i].erased, b.entries[i].salt, b.entries[i].body = stored(b.entry(i).BodyDigest()), nil, nil
		clear(p.salt) // in data
		clear(p.body)
	}
	// A row of the same size is overwritten where it is. Making it smaller can
	// leave copies of it between the rows of its page, which no deletion clears.
	_, err := w.run(stmtRewrite, int64(b.key), data)
	if err == nil {
		_, err = w.run(stmtRewrite, int64(b.key), b.pack())
	}
	if err == nil {
		_, err = w.run(stmtHole, holes, int64(b.key), 0)
	}
	return err
}
