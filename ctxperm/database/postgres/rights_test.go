package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestRights checks that a change that the role could not revert is refused
// with the missing privilege. With the privilege it is made and reverted.
func TestRights(t *testing.T) {
	for _, tt := range []struct{ grant, text, missing string }{
		{"GRANT SELECT, DELETE, UPDATE, TRIGGER ON users TO agent", "DELETE FROM users WHERE id = 2", "INSERT"},
		{"GRANT SELECT, INSERT, UPDATE, TRIGGER ON users TO agent", "INSERT INTO users VALUES (9)", "DELETE"},
		{"GRANT INSERT, UPDATE, DELETE, TRIGGER ON users TO agent", "INSERT INTO users VALUES (9)", "SELECT"},
		{"GRANT SELECT, INSERT, DELETE, TRIGGER ON users TO agent", "INSERT INTO users VALUES (9)", "UPDATE"},
	} {
		w := newTestEnv(t, `CREATE TABLE users (id int PRIMARY KEY, name text, age int); INSERT INTO users VALUES (1, 'ann', 30), (2, 'bob', 40);`+tt.grant)
		before, tx := w.Dump(), w.Begin()
		out := w.Call(tx, "sql_execute", tt.text)
		require.Equal(t, tool.StatusFailed, out.Status, "%s", tt.grant)
		require.Contains(t, out.Error.Why, "GRANT "+tt.missing, "%s", tt.grant)
		require.Equal(t, before, w.Dump())
		w.Exec("GRANT " + tt.missing + " ON users TO agent")
		w.Done(tx, tt.text)
		rep, err := tx.Revert(t.Context(), revert.Options{})
		require.NoError(t, err, "%+v", rep.NotReverted())
		require.Equal(t, before, w.Dump())
	}
}

// TestColumnRights checks that rights to columns suffice if the revert needs no
// more.
func TestColumnRights(t *testing.T) {
	w := newTestEnv(t, `CREATE TABLE users (id int PRIMARY KEY, name text, age int); INSERT INTO users VALUES (1, 'ann', 30), (2, 'bob', 40);
		GRANT TRIGGER ON users TO agent; GRANT SELECT (id, name, age), UPDATE (age) ON users TO agent;
		CREATE FUNCTION rename() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$ UPDATE users SET name = 'x' $$`)
	before, tx := w.Dump(), w.Begin()
	w.Done(tx, "UPDATE users SET age = age + 1")
	require.Contains(t, w.Call(tx, "sql_execute", "UPDATE users SET name = 'x'").Error.Why, "permission denied")
	require.Contains(t, w.Execute(tx, "SELECT rename()").Error.Why, `GRANT UPDATE ("name")`)
	_, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before, w.Dump())
}

// TestUnwatched checks a revert that removes a row without permission to read
// whether a foreign key removes others. If one does, nothing is removed.
func TestUnwatched(t *testing.T) {
	w := newTestEnv(t, `CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE k (a text, p int REFERENCES p ON DELETE CASCADE);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'; CREATE TRIGGER t BEFORE DELETE ON k FOR EACH ROW EXECUTE FUNCTION f();
		GRANT ALL ON p TO agent`)
	before, tx := w.Dump(), w.Begin()
	w.Done(tx, "INSERT INTO p VALUES (1), (2), (3)")
	require.NoError(t, tx.Commit(t.Context()))
	w.Exec("INSERT INTO k VALUES ('theirs', 2)")
	rep, err := w.Session.Revert(t.Context(), tx.ID(), revert.Options{})
	require.Error(t, err)
	require.Len(t, rep.NotReverted(), 1)
	require.Equal(t, "db://main/p/'2'", rep.NotReverted()[0].Resource)
	require.Contains(t, rep.NotReverted()[0].Why, "rows of k that another client created")
	require.Contains(t, w.Dump(), "(theirs,2)")
	w.Exec("DELETE FROM k")
	_, err = w.Session.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before, w.Dump())
}

// TestJournalIsNoDatabase checks that calls cannot read or change their own
// records: a role with any right to a journal is refused.
func TestJournalIsNoDatabase(t *testing.T) {
	w := newTestEnv(t, "CREATE TABLE users (id int PRIMARY KEY); GRANT SELECT ON users TO agent; CREATE SCHEMA other; GRANT USAGE ON SCHEMA other TO agent;"+
		"CREATE TABLE other.journal (a int); CREATE TABLE other.owners (a int); CREATE TABLE other.flushes (a int); CREATE TABLE other.entries (a int); CREATE TABLE other.scrub (a int)")
	tx := w.Begin()
	require.Equal(t, tool.StatusDone, w.Call(tx, "sql_query", "SELECT * FROM users").Status)
	for _, grant := range []string{"SELECT ON other.entries", "SELECT (a) ON other.owners", "DELETE ON other.scrub", "INSERT ON other.flushes"} {
		w.Exec("GRANT " + grant + " TO agent")
		out := w.Call(tx, "sql_query", "SELECT * FROM users")
		require.NotEqual(t, tool.StatusDone, out.Status, grant)
		require.Contains(t, out.Error.Why, "has rights in schema other, which holds a journal", grant)
		w.Exec("REVOKE " + grant + " FROM agent")
	}
	require.Equal(t, tool.StatusDone, w.Call(tx, "sql_query", "SELECT * FROM users").Status)
}
