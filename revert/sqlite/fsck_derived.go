package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/remit-dev/remit/revert/journal"
)

// derived compares the derived tables with the batches that they were derived
// from. Other processes may append meanwhile, so all of it is one snapshot.
func (f *fsck) derived(ctx context.Context) (err error) {
	tx, err := f.journal.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return f.unlessDamage(err)
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	d := derivation{fsck: f, tx: tx, ctx: ctx}
	return f.unlessDamage(d.run())
}

type derivation struct {
	*fsck

	tx      *sql.Tx
	ctx     context.Context //nolint:containedctx // as short as the call
	indexed batchKey
	ledger  ledger
	places  int64 // number of rows that places must have
	txns    int64 // number of transactions that began

	uncounted bool // there is a damaged batch
}

func (d *derivation) run() error {
	if err := d.tx.QueryRowContext(d.ctx, "SELECT indexed FROM state").Scan(&d.indexed); err != nil {
		return err
	}
	for _, part := range []func() error{d.batches, d.counts, d.transactions, d.claimed} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// batches reads what the batches say, and looks for the places of each.
func (d *derivation) batches() error {
	look, err := d.tx.PrepareContext(d.ctx, "SELECT kinds FROM places WHERE name = ? AND key = ?")
	if err != nil {
		return err
	}
	defer func() { _ = look.Close() }() // it only reads
	return eachOf(d.ctx, d.tx, "SELECT key, n, data FROM batches ORDER BY key", func(rows *sql.Rows) error {
		b, err := scanBatch(rows)
		if err != nil {
			return err
		}
		for _, bad := range []error{b.bad, b.lost} {
			if bad != nil {
				d.problem("%w", bad)
			}
		}
		if b.key > d.indexed {
			return nil
		}
		if b.ops.take.To.Txn != "" && b.ops.take.From == "" {
			d.txns++
		}
		d.ledger.add(b.ops)
		d.ledger.compact()
		return d.placed(look, b)
	})
}

func (d *derivation) placed(look *sql.Stmt, b *storedBatch) error {
	if b.bad != nil {
		d.uncounted = true // nobody can tell its places
		return nil
	}
	for name, kinds := range b.places() {
		d.places++
		var is int64
		err := look.QueryRowContext(d.ctx, name, int64(b.key)).Scan(&is)
		if errors.Is(err, sql.ErrNoRows) || err == nil && is != kinds {
			d.problem("the index lacks entries of %q in the batch of entry %d", name[1:], b.key.pos())
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// counts finds rows that belong to no batch.
func (d *derivation) counts() error {
	for _, c := range []struct {
		table, but string
		want       int64
	}{{"places", " WHERE name <> '" + holes + "'", d.places}, {"txns", "", d.txns}} {
		var is int64
		if err := d.tx.QueryRowContext(d.ctx, "SELECT count(*) FROM "+c.table+c.but).Scan(&is); err != nil {
			return err
		}
		if is != c.want && !d.uncounted {
			d.problem("the table %s has %d rows, and the batches make %d", c.table, is, c.want)
		}
	}
	return nil
}

// transactions compares the open transactions, in their order.
func (d *derivation) transactions() error {
	want := d.ledger.unfinished(nil)
	err := eachOf(d.ctx, d.tx, "SELECT txn, owner FROM txns WHERE ended = 0 ORDER BY age", func(rows *sql.Rows) error {
		var is journal.Ownership
		if err := rows.Scan(&is.Txn, &is.Owner); err != nil {
			return err
		}
		if len(want) == 0 || want[0] != is {
			d.problem("the table of transactions has %s with the owner %s, and the batches do not", is.Txn, is.Owner)
			return nil
		}
		want = want[1:]
		return nil
	})
	for _, o := range want {
		d.problem("the table of transactions lacks %s with the owner %s", o.Txn, o.Owner)
	}
	return err
}

// claimed checks that each claim belongs to a transaction that has not ended.
// New claims may: their transactions have just ended.
func (d *derivation) claimed() error {
	err := eachOf(d.ctx, d.tx, "SELECT resource, txn FROM claims", func(rows *sql.Rows) error {
		var resource, txn string
		if err := rows.Scan(&resource, &txn); err != nil {
			return err
		}
		if t := d.ledger.txns[txn]; t == nil || t.ended {
			d.problem("%s is claimed by transaction %s, which has ended or never began: no other transaction can claim it", resource, txn)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return eachOf(d.ctx, d.tx, "SELECT id, resource, txn, checksum FROM new_claims ORDER BY id", func(rows *sql.Rows) error {
		_, err := scanClaim(rows)
		return err
	})
}
