package sqlite

import (
	"database/sql"
	"encoding/binary"
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
