package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestQuery checks the values of each type, and consecutive pages.
func TestQuery(t *testing.T) {
	w := newTestEnv(t, users)
	tx := w.Begin()
	out := w.Call(tx, "sql_query", "SELECT id, name, age FROM users WHERE id <= $1 ORDER BY id", 2)
	require.Equal(t, [][]any{{1.0, "ann", 30.0}, {2.0, "bob", 40.0}}, w.Show(out).Rows)
	out = w.Call(tx, "sql_query", `SELECT $1::int8, $2::float8, $3::text, $4::bytea, $5::text, $6::bool, 'infinity'::float8, 1.50::numeric, 'NaN'::numeric, '{"a":[1]}'::jsonb, ARRAY[1,2], timestamptz '2024-01-02 03:04:05+02'`,
		7, 1.5, "é", map[string]any{"base64": "AP8="}, nil, true)
	require.Equal(t, []any{7.0, 1.5, "é", map[string]any{"base64": "AP8="}, nil, true, "+Inf", 1.5, "NaN", map[string]any{"a": []any{1.0}}, "{1,2}", "2024-01-02 01:04:05+00"}, w.Show(out).Rows[0])
}

// TestRefuses checks that a statement that does not only read, or cannot be
// reverted, changes nothing.
func TestRefuses(t *testing.T) {
	w := newTestEnv(t, users+`CREATE TABLE nokey (a int); GRANT ALL ON nokey TO agent; CREATE SEQUENCE s; GRANT ALL ON SEQUENCE s TO agent;
		CREATE TABLE mine (a int PRIMARY KEY); ALTER TABLE mine OWNER TO agent; INSERT INTO mine VALUES (1);
		CREATE TABLE noright (a int PRIMARY KEY); GRANT SELECT, INSERT, UPDATE ON noright TO agent;
		CREATE TABLE parts (a int PRIMARY KEY) PARTITION BY RANGE (a); CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (10); GRANT ALL ON parts, parts1 TO agent;
		CREATE FUNCTION sly() RETURNS int LANGUAGE plpgsql AS 'BEGIN UPDATE users SET age = 0; RETURN 1; END';
		CREATE FUNCTION empty() RETURNS int LANGUAGE plpgsql AS 'BEGIN TRUNCATE mine; RETURN 1; END';
		CREATE FUNCTION make() RETURNS int LANGUAGE plpgsql AS 'BEGIN CREATE TABLE made (a int); RETURN 1; END';
		CREATE FUNCTION style() RETURNS text LANGUAGE sql AS $$ SELECT set_config('datestyle', 'German', false) $$;
		CREATE TABLE trig (a int PRIMARY KEY); GRANT ALL ON trig TO agent; CREATE FUNCTION tf() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER tt BEFORE INSERT ON trig FOR EACH ROW EXECUTE FUNCTION tf();`)
	before, tx := w.Dump(), w.Begin()
	for text, why := range map[string]string{
		"DELETE FROM users": "only reads", "SELECT 1; SELECT 2": "only one", "CREATE TABLE x (a int)": "only one", "SELECT nextval('s')": "read-only",
		"WITH x AS (DELETE FROM users RETURNING 1) SELECT * FROM x": "only reads", "SELECT sly()": "read-only", "COPY users TO STDOUT": "only one",
		"SHOW all": "only one", "SELECT 1 INTO y": "", "TRUNCATE users": "only one", "SELECT pg_read_file('/etc/passwd')": "permission denied",
		"EXPLAIN ANALYZE SELECT 1": "only one", "BEGIN": "only one", "SELECT * FROM nowhere": "does not exist", "SELECT $1": "", "DO 'BEGIN END'": "only one",
	} {
		out := w.Call(tx, "sql_query", text)
		require.Equal(t, tool.StatusFailed, out.Status, "%s: %s", text, out.Output)
		require.Contains(t, out.Error.Why, why, text)
	}
	for text, why := range map[string]string{
		"INSERT INTO nokey VALUES (1)": "no primary key", "TRUNCATE users": "only one", "DROP TABLE users": "only one", "SELECT empty()": "schema",
		"SELECT make()": "schema", "INSERT INTO noright VALUES (1)": "GRANT TRIGGER", "INSERT INTO parts VALUES (1)": "partition",
		"INSERT INTO users VALUES (1)": "duplicate key", "SELECT lo_create(0)": "large objects", "INSERT INTO trig VALUES (1)": "has triggers",
		"UPDATE users SET age = 1 WHERE style() IS NOT NULL": "datestyle", "COPY users FROM STDIN": "only one", "LOCK TABLE users": "only one",
		"CALL x()": "only one", "CREATE TABLE z AS SELECT 1": "only one", "COMMIT": "only one", "UPDATE users SET age = 1; COMMIT": "only one",
	} {
		out := w.Call(tx, "sql_execute", text)
		require.Equal(t, tool.StatusFailed, out.Status, "%s: %s", text, out.Output)
		require.Contains(t, out.Error.Why, why, text)
		require.Equal(t, before, w.Dump(), text)
	}
	w.Done(tx, "SELECT sly()") // changes of a function are authorized and reverted like others
	require.NotEqual(t, before, w.Dump())
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err, "%+v", rep)
	require.Equal(t, before, w.Dump())
}

// TestExecute changes rows, reverts and redoes that, also with a runtime that
// has only the journal.
func TestExecute(t *testing.T) {
	w := newTestEnv(t, users)
	before, tx := w.Dump(), w.Begin()
	out := w.Done(tx, "UPDATE users SET age = age + 1 WHERE age > $1", 10)
	require.Len(t, out.Changes, 2)
	require.Equal(t, "db://main/users/'1'", out.Changes[0].Resource)
	require.EqualValues(t, "applied", out.Verdict.Presence)
	out = w.Done(tx, "INSERT INTO users VALUES (4, $1) RETURNING id, name", "dan")
	require.Equal(t, [][]any{{4.0, "dan"}}, w.Show(out).Rows)
	w.Done(tx, "DELETE FROM users WHERE id = 2")
	require.Empty(t, w.Done(tx, "UPDATE users SET age = 5 WHERE id = 99").Changes)
	w.Done(tx, "INSERT INTO users VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.name")
	w.Done(tx, "UPDATE users SET id = id + 10")
	after := w.Dump()
	require.NoError(t, tx.Commit(t.Context()))
	rep, err := w.Session.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err, "%+v", rep)
	require.Equal(t, revert.TxnReverted, rep.State)
	require.Equal(t, before, w.Dump())
	w.Start()
	_, err = w.Runtime.Redo(t.Context(), tx.ID(), "ann")
	require.NoError(t, err)
	require.Equal(t, after, w.Dump())
	_, err = w.Runtime.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before, w.Dump())
}
