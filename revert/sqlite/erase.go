package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// erase destroys bodies and salts and keeps the digests of the bodies. SQLite
// overwrites the freed bytes in pages with zeros (secure_delete). Copies in the
// write-ahead log remain until CollectGarbage empties it.
func (w *writer) erase(b journal.Batch) error {
	for _, call := range b.Erase {
		after := int64(0)
		for {
			e := record.Entry{}
			err := w.stmts[stmtErase].QueryRowContext(context.Background(), call, after).Scan(&e.Pos, &e.Header.Kind, &e.Salt, &e.Body)
			if errors.Is(err, sql.ErrNoRows) {
				break
			}
			if err != nil {
				return err
			}
			if after = e.Pos; !e.Header.Kind.Erasable() {
				continue
			}
			_, err = w.run(stmtErased, e.Pos, stored(e.BodyDigest()))
			if err == nil {
				_, err = w.run(stmtEraseOne, e.Pos)
			}
			if err != nil {
				return fmt.Errorf("erase entry %d: %w", e.Pos, err)
			}
		}
	}
	return nil
}
