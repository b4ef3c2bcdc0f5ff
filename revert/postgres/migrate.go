package postgres

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/remit-dev/remit/revert/journal"
)

// migrations are the steps of the schema, forward only. A released file never
// changes. The number of applied files is the version of the schema.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the advisory lock of a migration, with a key derived from
// the schema: no table exists that could name one.
const migrationLock = "SELECT pg_advisory_xact_lock(hashtextextended('remit migration of ' || $1, 0))"

// migrate creates the schema and applies the steps that it lacks. Running nodes
// continue meanwhile: a step must leave the tables usable for older nodes.
func (j *Journal) migrate(ctx context.Context, conn *pgx.Conn) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	if err := j.checkSchema(ctx, conn, true); err != nil { // before anything in it is read
		return err
	}
	version, err := j.version(ctx, conn)
	if err != nil || version == len(files) {
		return err
	}
	if version > len(files) {
		return fmt.Errorf("schema %s has version %d; this remit knows versions up to %d: use a newer one: %w", j.schema, version, len(files), ErrNewer)
	}
	if version == 0 && j.existing {
		return fmt.Errorf("schema %s: %w", j.schema, ErrNoJournal)
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, migrationLock, j.schema); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{j.schema}.Sanitize()); err != nil {
			return err
		}
		if err := j.checkSchema(ctx, tx, false); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version int PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"); err != nil {
			return err
		}
		version, err := j.version(ctx, tx) // another opening may have migrated meanwhile
		for i := version; err == nil && i < len(files); i++ {
			err = applyMigration(ctx, tx, files[i], i+1)
		}
		return err
	})
}

// version returns the version of the schema, which is 0 before there is one.
func (j *Journal) version(ctx context.Context, q querier) (version int, err error) {
	var exists bool
	err = q.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", pgx.Identifier{j.schema, "schema_version"}.Sanitize()).Scan(&exists)
	if err == nil && exists {
		err = q.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM schema_version").Scan(&version)
	}
	return version, err
}

func applyMigration(ctx context.Context, tx pgx.Tx, name string, version int) error {
	text, err := migrations.ReadFile(name)
	if err != nil {
		return err
	}
	if _, err := tx.Conn().PgConn().Exec(ctx, string(text)).ReadAll(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if version == 1 {
		if err := createJournal(ctx, tx); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, "INSERT INTO schema_version (version) VALUES ($1)", version)
	return err
}

// createJournal makes the row of a new journal. The class of its locks is
// random, so that journals of one database do not share locks.
func createJournal(ctx context.Context, tx pgx.Tx) error {
	var class [4]byte
	if _, err := rand.Read(class[:]); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "INSERT INTO journal (lock_class, root) VALUES ($1, $2)",
		int32(binary.NativeEndian.Uint32(class[:])), journal.Tree{}.Head().Root)
	return err
}

// querier reads: a connection, a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

var errNoRows = pgx.ErrNoRows

func noRows(err error) bool { return errors.Is(err, errNoRows) }
