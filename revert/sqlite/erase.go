package sqlite

import (
	"cmp"
	"fmt"

	"github.com/remit-dev/remit/revert/journal"
)

// erase destroys bodies and salts and keeps the digests of the bodies. SQLite
// overwrites the freed bytes in pages with zeros (secure_delete). Copies in the
// write-ahead log remain until CollectGarbage empties it. Readers that keep
// batches in memory see the number of erasures.
func (w *writer) erase(calls []string) error {
	for _, call := range calls {
		keys, err := w.keysOf(placeOf(byCall, call))
		for _, key := range keys {
			if err == nil {
				err = w.eraseIn(key, call)
			}
		}
		if err != nil {
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

func (w *writer) eraseIn(key batchKey, call string) error {
	var n int64
	var data []byte
	found, err := w.findAll(stmtBatchAt, []any{int64(key)}, &n, &data)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("the batch of entry %d: %w", key.pos(), journal.ErrNotFound)
	}
	b := unpack(key, n, data)
	if err := cmp.Or(b.bad, b.lost); err != nil {
		return err
	}
	for i := range b.entries {
		e, err := b.checked(i)
		if err != nil {
			return err
		}
		if e.Header.Call == call && e.Header.Kind.Erasable() && e.Erased == "" {
			b.entries[i].erased, b.entries[i].salt, b.entries[i].body = stored(e.BodyDigest()), nil, nil
			clear(e.Salt) // in data
			clear(e.Body)
		}
	}
	// A row of the same size is overwritten where it is. Making it smaller can
	// leave copies of it between the rows of its page, which no deletion clears.
	if _, err = w.run(stmtRewrite, int64(key), data); err == nil {
		_, err = w.run(stmtRewrite, int64(key), b.pack())
	}
	return err
}
