package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// keptOps is the number of recorded transactions.
const keptOps = 10_000

// errOther: the file is not the database that was changed.
var errOther = errors.New("another database is in its place")

// adopt creates the table that records commits, if it is missing. It uses its
// own transaction: a call that rolls back must not remove the identity of the
// database.
func (c *connection) adopt(ctx context.Context) error {
	if id, err := c.identity(ctx); err != nil || id != "" {
		return err
	}
	return errors.Join(
		c.own(ctx, "BEGIN IMMEDIATE"),
		c.own(ctx, "CREATE TABLE IF NOT EXISTS main."+opsTable+" (seq INTEGER PRIMARY KEY, op TEXT NOT NULL)"),
		c.own(ctx, "INSERT OR IGNORE INTO main."+opsTable+" (seq, op) VALUES (0, 'd_' || lower(hex(randomblob(16))))"),
		c.own(ctx, "COMMIT"),
	)
}

// identity returns the identity of the database, or "".
func (c *connection) identity(ctx context.Context) (string, error) {
	rows, err := c.rows(ctx, "SELECT op FROM main."+opsTable+" WHERE seq = 0")
	if err != nil && strings.Contains(err.Error(), "no such table") {
		return "", nil
	}
	if err != nil || len(rows) == 0 {
		return "", err
	}
	id, ok := rows[0][0].(string)
	if !ok || !strings.HasPrefix(id, "d_") {
		return "", fmt.Errorf("%w: the table %s is not the one that remit makes", engine.ErrRefused, opsTable)
	}
	return id, nil
}

// Identity reads it on its own connection.
func (d *file) Identity(ctx context.Context) (id string, err error) {
	c, err := d.connect(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	id, err = c.identity(ctx)
	return id, d.trouble(err)
}

// sign records the call in the transaction.
func (c *connection) sign(ctx context.Context, op string) (m engine.TxnMarker, err error) {
	m.Op = op
	if m.Identity, err = c.identity(ctx); err != nil {
		return m, err
	}
	rows, err := c.rows(ctx, "INSERT INTO main."+opsTable+" (seq, op) SELECT max(seq) + 1, ? FROM main."+opsTable+" RETURNING seq", op)
	if err != nil {
		return m, err
	}
	m.Seq, _ = rows[0][0].(int64)
	return m, c.own(ctx, "DELETE FROM main."+opsTable+" WHERE seq > 0 AND seq <= ?", m.Seq-keptOps)
}

// TxnOutcomeOf looks up the record of the transaction. Numbers are assigned in order,
// and the number of a transaction that did not commit is reused. So if its
// number is missing and within the recorded range, it never committed.
func (d *file) TxnOutcomeOf(ctx context.Context, m engine.TxnMarker) (fate engine.TxnOutcome, err error) {
	c, err := d.connect(ctx)
	if err != nil {
		return engine.Lost, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	id, err := c.identity(ctx)
	switch {
	case err != nil:
		return engine.Lost, d.trouble(err)
	case id != m.Identity:
		return engine.Lost, d.trouble(errOther)
	}
	rows, err := c.rows(ctx, "SELECT (SELECT op FROM main."+opsTable+" WHERE seq = ?1), max(seq), min(iif(seq > 0, seq, NULL)) FROM main."+opsTable, m.Seq)
	if err != nil {
		return engine.Lost, d.trouble(err)
	}
	op, last := rows[0][0], rows[0][1]
	newest, _ := last.(int64)
	oldest, some := rows[0][2].(int64)
	switch {
	case op == m.Op:
		return engine.Committed, nil
	case op != nil, newest == m.Seq-1, some && oldest < m.Seq && m.Seq < newest:
		return engine.Aborted, nil
	default:
		return engine.Lost, nil // pruned, or another client emptied the table
	}
}
