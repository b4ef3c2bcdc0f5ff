package postgres_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/postgres"
)

// A schema that a lesser role prepared could run its triggers with the rights of
// a superuser.
func TestPreparedSchema(t *testing.T) {
	for name, made := range map[string]string{
		"before the first use": `CREATE SCHEMA %[1]s AUTHORIZATION agent; SET ROLE agent; SET search_path = %[1]s;
			CREATE TABLE schema_version (version int PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now());
			CREATE FUNCTION raise() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN ALTER ROLE agent SUPERUSER; RETURN new; END';
			CREATE TRIGGER raise BEFORE INSERT ON schema_version FOR EACH ROW EXECUTE FUNCTION raise()`,
		"one table": "CREATE SCHEMA %[1]s; CREATE TABLE %[1]s.schema_version (version int, applied timestamptz DEFAULT now()); ALTER TABLE %[1]s.schema_version OWNER TO agent",
		"a view":    "CREATE SCHEMA %[1]s; CREATE VIEW %[1]s.schema_version AS SELECT 0 AS version; ALTER VIEW %[1]s.schema_version OWNER TO agent",
	} {
		t.Run(name, func(t *testing.T) {
			url, schema := schemaName(t)
			pgtest.Exec(t, url, fmt.Sprintf(made, schema))
			_, err := postgres.Open(t.Context(), url, postgres.Schema(schema))
			require.ErrorIs(t, err, postgres.ErrForeignSchema)
			require.Equal(t, "f\n", pgtest.Rows(t, url, "SELECT rolsuper FROM pg_roles WHERE rolname = 'agent'"))
		})
	}
}

// The migrations of a schema are its owner's.
func TestMigrationByAnotherRole(t *testing.T) {
	url, schema := schemaName(t)
	pgtest.Exec(t, url, fmt.Sprintf("CREATE SCHEMA %[1]s; GRANT ALL ON SCHEMA %[1]s TO agent", schema))
	_, err := postgres.Open(t.Context(), bytesReplace(url, "postgres@", "agent@"), postgres.Schema(schema))
	require.ErrorIs(t, err, postgres.ErrForeignSchema)
	require.ErrorContains(t, err, "connect as that role once")
}

// A role that lacks a right is refused before it changed anything, not in the
// middle of a revert.
func TestLackingRight(t *testing.T) {
	url, schema := schemaName(t)
	require.NoError(t, open(t, url, postgres.Schema(schema)).Close())
	pgtest.Exec(t, url, fmt.Sprintf(`GRANT USAGE ON SCHEMA %[1]s TO agent; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s TO agent;
		REVOKE DELETE ON %[1]s.claims FROM agent; REVOKE UPDATE ON %[1]s.txns FROM agent`, schema))
	_, err := postgres.Open(t.Context(), bytesReplace(url, "postgres@", "agent@"), postgres.Schema(schema))
	require.ErrorIs(t, err, postgres.ErrRights)
	require.ErrorContains(t, err, "role agent has no DELETE on claims, UPDATE on txns: GRANT SELECT, INSERT")
	require.Equal(t, "1\n", pgtest.Rows(t, url, "SELECT count(*) FROM "+schema+".owners"))
}

// A role that does not see all entries would collect the content that the
// others name.
func TestHiddenRows(t *testing.T) {
	url, schema := schemaName(t)
	j := until(t, url, postgres.Schema(schema))
	require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: pair("t", 0), Durable: true}))
	pgtest.Exec(t, url, fmt.Sprintf(`GRANT USAGE ON SCHEMA %[1]s TO agent; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s TO agent;
		ALTER TABLE %[1]s.entries ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON %[1]s.entries TO agent USING (false) WITH CHECK (true)`, schema))
	_, err := postgres.Open(t.Context(), bytesReplace(url, "postgres@", "agent@"), postgres.Schema(schema))
	require.ErrorIs(t, err, postgres.ErrRights)
	require.ErrorContains(t, err, "row security can hide rows of table entries")
}
