package postgres

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// errOther: the location leads to another database than the changed one.
var errOther = errors.New("another database is in its place")

// identity distinguishes the database from a copy: by its cluster, and its ID
// in the cluster.
func (c *connection) identity(ctx context.Context) (string, error) {
	row, err := c.one(ctx, "SELECT s.system_identifier::text || '/' || d.oid::text FROM pg_control_system() s, pg_database d WHERE d.datname = current_database()")
	if err != nil {
		return "", err
	}
	return row[0], nil
}

// Identity reads it on its own connection.
func (s *server) Identity(ctx context.Context) (string, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return "", err
	}
	defer c.close()
	return c.identity(ctx)
}

// TxnOutcomeOf queries the server. A transaction that still runs belongs to a process
// that has died or abandoned it. Fate closes its connection, and queries the
// server again.
func (s *server) TxnOutcomeOf(ctx context.Context, m engine.TxnMarker) (engine.TxnOutcome, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return engine.Lost, err
	}
	defer c.close()
	id, err := c.identity(ctx)
	if err != nil {
		return engine.Lost, err
	}
	if id != m.Identity {
		return engine.Lost, errOther
	}
	fate, err := c.txnOutcome(ctx, m)
	if err != nil || fate != engine.Running {
		return fate, err
	}
	if _, err := c.all(ctx, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid = $1::int AND backend_xid = ($2::xid8)::xid", itoa(m.Process), m.Xid); err != nil {
		return engine.Running, nil // not permitted; then the caller waits
	}
	return c.txnOutcome(ctx, m)
}

func (c *connection) txnOutcome(ctx context.Context, m engine.TxnMarker) (engine.TxnOutcome, error) {
	row, err := c.one(ctx, "SELECT coalesce(pg_xact_status($1::xid8), '')", m.Xid)
	if e, ok := asPg(err); ok && e.Code == "22023" { // the server has not issued this ID yet: an older state was restored
		return engine.Lost, nil
	}
	if err != nil {
		return engine.Lost, err
	}
	switch row[0] {
	case "committed":
		return engine.Committed, nil
	case "aborted":
		return engine.Aborted, nil
	case "in progress":
		return engine.Running, nil
	default:
		return engine.Lost, nil // too long ago
	}
}
