package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/revert/record"
)

const (
	applicationID = 0x72656d74 // "remt", in the header of the file
	formatVersion = 5          // raised by any change that an older remit would misread
)

// schema is written once, with the format's number. A row of batches is never
// deleted, and changes only if a body in it is erased. The tables places, txns
// and claims are derived from the rows of batches up to the key state.indexed;
// what the later ones say is read from them. So an append writes one row, and
// many batches share the work on the derived tables. Claims are in new_claims
// until then: an erasure must destroy the names of their resources, so no row
// keeps them after the transaction has ended.
//
// A place is a session, a transaction, a call or a rare kind, and its rows name
// the batches with such entries. The kinds that every call leaves, even one that
// only reads, have no places: a query for them needs most of the journal anyway.
const schema = `
CREATE TABLE batches (
	key  INTEGER PRIMARY KEY,
	n    INTEGER NOT NULL,
	data BLOB NOT NULL
) STRICT;

CREATE TABLE state (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	indexed  INTEGER NOT NULL,
	claimed  INTEGER NOT NULL,
	erasures INTEGER NOT NULL,
	barriers INTEGER NOT NULL
) STRICT;
INSERT INTO state VALUES (1, 0, 0, 0, 0);

CREATE TABLE new_claims (
	id       INTEGER PRIMARY KEY,
	resource TEXT NOT NULL,
	txn      TEXT NOT NULL,
	checksum INTEGER NOT NULL
) STRICT;

CREATE TABLE places (
	name  TEXT NOT NULL,
	key   INTEGER NOT NULL,
	kinds INTEGER NOT NULL,
	PRIMARY KEY (name, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
	digest  TEXT NOT NULL UNIQUE,
	size    INTEGER NOT NULL,
	content BLOB NOT NULL
) STRICT;

CREATE TABLE txns (
	age   INTEGER PRIMARY KEY,
	txn   TEXT NOT NULL UNIQUE,
	owner TEXT NOT NULL,
	ended INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX txns_unfinished ON txns (age) WHERE ended = 0;

CREATE TABLE claims (
	resource TEXT PRIMARY KEY,
	txn      TEXT NOT NULL REFERENCES txns (txn)
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_txn ON claims (txn);
`

// errEmpty says that the journal must be created before it is read.
var errEmpty = errors.New("no journal yet")

// querier reads: a pool or one connection.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkFormat refuses files of other versions, before anything in them is read
// or changed.
func checkFormat(ctx context.Context, db querier) error {
	var application, version, tables int
	err := db.QueryRowContext(ctx, `SELECT
		(SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version),
		(SELECT count(*) FROM sqlite_schema)`).Scan(&application, &version, &tables)
	switch {
	case err != nil && codeOf(err) == codeNotADB:
		return fmt.Errorf("%w: %s is not an SQLite file", record.ErrDamaged, databaseName)
	case err != nil:
		return explain(err)
	case application == 0 && version == 0 && tables == 0:
		return errEmpty
	case application != applicationID:
		return fmt.Errorf("%s belongs to another application (id %#x)", databaseName, application)
	case version > formatVersion:
		return fmt.Errorf("%s has format %d; this remit knows formats up to %d: use a newer one", databaseName, version, formatVersion)
	case version > 0 && version < formatVersion && tables > 0:
		return fmt.Errorf("%s has format %d, from before the first release: move the folder away and begin a new one", databaseName, version)
	case version != formatVersion || tables == 0:
		return fmt.Errorf("%w: %s has format %d and %d tables", record.ErrDamaged, databaseName, version, tables)
	}
	return nil
}

// create creates the tables, unless another process did meanwhile. Format and
// tables become visible together, so no process ever sees an incomplete
// journal.
func create(ctx context.Context, db *sql.DB, limit busyBackoff) error {
	conn, err := connect(ctx, db, limit)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // only returns it to the pool
	// The way to free pages is part of the file's header, and must be set
	// before the header is written. In an existing file it has no effect.
	if err := retryBusy(ctx, limit, func() error { return exec(conn, "PRAGMA auto_vacuum = INCREMENTAL") }); err != nil {
		return err
	}
	// The switch to WAL needs exclusive access to the file and ignores
	// busy_timeout.
	if err := retryBusy(ctx, limit, func() error { return exec(conn, "PRAGMA journal_mode = WAL") }); err != nil {
		return err
	}
	if err := retryBusy(ctx, limit, func() error { return exec(conn, "BEGIN IMMEDIATE") }); err != nil {
		return err
	}
	err = checkFormat(context.WithoutCancel(ctx), conn)
	if errors.Is(err, errEmpty) {
		if err = exec(conn, schema+fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT", applicationID, formatVersion)); err == nil {
			return nil
		}
	}
	// A failed statement may have ended the transaction itself. If err is nil,
	// another process created the tables meanwhile.
	_ = exec(conn, "ROLLBACK")
	return err
}

// exec runs a statement without a cancellable context: the driver cannot always
// tell whether an interrupted statement took effect.
func exec(conn *sql.Conn, query string) error {
	if _, err := conn.ExecContext(context.Background(), query); err != nil {
		return explain(err)
	}
	return nil
}
