package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// newClaim is a row of new_claims.
type newClaim struct {
	id            int64
	resource, txn string
}

// sum is the checksum of a claim, which no index repeats.
func (c newClaim) sum() int64 {
	text := binary.LittleEndian.AppendUint64(nil, uint64(c.id))
	return int64(crc32.Checksum(appendText(appendText(text, c.resource), c.txn), checksum))
}

func scanClaim(rows *sql.Rows) (c newClaim, err error) {
	var sum int64
	if err := rows.Scan(&c.id, &c.resource, &c.txn, &sum); err != nil {
		return c, err
	}
	if sum != c.sum() {
		return c, fmt.Errorf("%w: claim %d of transaction %s does not fit its checksum", record.ErrDamaged, c.id, c.txn)
	}
	return c, nil
}

func (w *writer) claim(b journal.Batch) error {
	for _, resource := range b.Claims {
		c := newClaim{w.claimed + 1, resource, b.Fence.Txn}
		if _, err := w.run(stmtNewClaim, c.id, c.resource, c.txn, c.sum()); err != nil {
			return err
		}
		w.claimed = c.id
		w.later.claim(c)
	}
	return nil
}

func (u *unindexed) claim(c newClaim) {
	u.ledger.claim(c.txn, c.resource)
	u.claims++
}

// renewClaims stores the table of claims again. Claims have no order, so their
// rows move between pages when pages split or join. Copies of them stay behind,
// which no deletion of the rows clears. Dropping all rows at once clears their
// pages; SQLite does that only without foreign keys.
func (w *writer) renewClaims() (err error) {
	if err := w.setForeignKeys(false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.setForeignKeys(true)) }()
	if err := w.begin(); err != nil {
		return err
	}
	claims, err := w.tabledClaims()
	if err != nil {
		return err
	}
	if _, err := w.run(stmtDropClaims); err != nil {
		return err
	}
	for _, c := range claims {
		if _, err := w.run(stmtClaim, c.resource, c.txn); err != nil {
			return err
		}
	}
	_, err = w.run(stmtCommit)
	return err
}

// setForeignKeys has no effect inside a transaction.
func (w *writer) setForeignKeys(on bool) error {
	_, err := w.conn.ExecContext(context.Background(), fmt.Sprintf("PRAGMA foreign_keys = %t", on))
	return err
}

// tabledClaims reads the table of claims, in its order.
func (w *writer) tabledClaims() (claims []newClaim, err error) {
	rows, err := w.stmts[stmtClaims].QueryContext(context.Background())
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var c newClaim
		if err := rows.Scan(&c.resource, &c.txn); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		claims = append(claims, c)
	}
	return claims, errors.Join(rows.Err(), rows.Close())
}
