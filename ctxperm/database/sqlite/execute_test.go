package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/databasetest"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestExecute changes rows with a statement. Each is on the journal with both
// versions, and the transaction reverts them.
func TestExecute(t *testing.T) {
	w := newTestEnv(t, users)
	before := w.Dump()
	tx := w.Begin()
	out := w.Done(tx, "UPDATE users SET age = age + 1 WHERE age > ?", 10)
	require.EqualValues(t, 2, *w.Show(out).Affected)
	require.Len(t, out.Changes, 2)
	require.Equal(t, "db://main/users/1", out.Changes[0].Resource)
	require.Equal(t, "write", out.Changes[0].Kind)
	require.EqualValues(t, "applied", out.Verdict.Presence)
	out = w.Done(tx, "INSERT INTO users(name) VALUES ('dan') RETURNING id, name")
	require.Equal(t, [][]any{{4.0, "dan"}}, w.Show(out).Rows)
	out = w.Done(tx, "DELETE FROM users WHERE id = 2")
	require.Equal(t, "delete", out.Changes[0].Kind)
	out = w.Done(tx, "UPDATE users SET age = 5 WHERE id = 99")
	require.Empty(t, out.Changes)
	after := w.Dump()
	require.NotEqual(t, before, after)
	require.NoError(t, tx.Commit(t.Context()))

	rep, err := w.Session.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, revert.TxnReverted, rep.State)
	require.Equal(t, before, w.Dump())

	// A revert of the revert, also with a runtime that has only the journal.
	w.Start()
	_, err = w.Runtime.Redo(t.Context(), tx.ID(), "ann")
	require.NoError(t, err)
	require.Equal(t, after, w.Dump())
	_, err = w.Runtime.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before, w.Dump())
}

// TestPostconditionsSeeRows checks that the policy sees each changed row after
// the call, and that a violation reverts the call.
func TestPostconditionsSeeRows(t *testing.T) {
	engine, err := rego.New(rego.Options{Modules: map[string]string{"rows.rego": `package remit

allow contains "calls may change rows"

ensure contains sprintf("the row %s is kept", [change.resource.text]) if {
	some change in input.changes
	change.resource.table == "users"
	change.resource.text != "db://main/users/1"
}`}})
	require.NoError(t, err)
	w := newTestEnv(t, users, agent.Policy(engine))
	tx := w.Begin()
	w.Done(tx, "UPDATE users SET age = 5 WHERE id = 1")
	before := w.Dump()
	out := w.Call(tx, "sql_execute", "UPDATE users SET age = 6")
	require.Equal(t, tool.StatusVerifyFailed, out.Status, "%+v", out)
	require.Contains(t, out.Error.Why, "the row db://main/users/2 is kept (rows.rego:5)")
	require.Equal(t, before, w.Dump())
}

// TestExecuteFails checks that a failed statement changes nothing, and that the
// transaction continues.
func TestExecuteFails(t *testing.T) {
	w := newTestEnv(t, users+`CREATE TABLE strict_t (id INTEGER PRIMARY KEY, u TEXT UNIQUE) STRICT; INSERT INTO strict_t VALUES (1, 'a');
		CREATE VIRTUAL TABLE words USING fts5(body);
		CREATE TRIGGER no BEFORE DELETE ON users WHEN old.id = 1 BEGIN SELECT RAISE(ROLLBACK, 'never'); END;`)
	before := w.Dump()
	tx := w.Begin()
	for _, text := range []string{
		"INSERT INTO strict_t VALUES (2, 'b'), (3, 'a')", "INSERT OR ROLLBACK INTO strict_t VALUES (2, 'a')", "DELETE FROM users",
		"DROP TABLE users", "CREATE INDEX x ON users(name)", "INSERT INTO words VALUES ('x')", "UPDATE remit_ops SET op = 'x'", "COMMIT",
		"INSERT INTO strict_t VALUES ('x', 'y')", "UPDATE users SET age = 1; COMMIT", "PRAGMA user_version=1", "CREATE TEMP TABLE x(a)",
		"INSERT INTO users VALUES (?, ?, ?)", "UPDATE users SET age = (SELECT 1 UNION SELECT abs(-9223372036854775808))", "VACUUM", "ATTACH ':memory:' AS x",
	} {
		out := w.Invoke(tx, "sql_execute", tool.Args{"sql": text})
		require.Equal(t, tool.StatusFailed, out.Status, "%s: %s", text, out.Text)
		require.Empty(t, out.Changes, text)
		require.Equal(t, before, w.Dump(), text)
	}
	w.Done(tx, "UPDATE users SET age = 1 WHERE id = 1")
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, before, w.Dump())
}

// TestConflicts checks that changes by another client after the call stay, row
// by row, and are reported.
func TestConflicts(t *testing.T) { databasetest.Conflicts(t, open) }

// TestLaterConflict checks a row that equals its version before a call only
// because the change of a later call could not be reverted. It is not done yet:
// it is reverted after that becomes possible.
func TestLaterConflict(t *testing.T) {
	w := newTestEnv(t, "CREATE TABLE t (id INTEGER PRIMARY KEY, u UNIQUE)")
	before, tx := w.Dump(), w.Begin()
	made := w.Done(tx, "INSERT INTO t VALUES (1, 'x')")
	w.Done(tx, "DELETE FROM t")
	w.Done(tx, "INSERT INTO t VALUES (2, 'x')")
	require.NoError(t, tx.Commit(t.Context()))
	rep, err := w.Session.Revert(t.Context(), tx.ID(), revert.Options{Calls: []string{made.Call}})
	require.ErrorIs(t, err, agent.ErrPartialRevert, "row 2 has the value that row 1 needs")
	require.Len(t, rep.NotReverted(), 2)
	_, err = w.Session.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before, w.Dump())
}

// TestNeeded checks that a row on which another client's row now depends stays,
// and the others are removed.
func TestNeeded(t *testing.T) {
	for deferred, left := range map[string]int{"": 1, "DEFERRABLE INITIALLY DEFERRED": 2, "ON DELETE CASCADE": 1, "ON DELETE RESTRICT": 1} {
		w := newTestEnv(t, "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE k (a, p REFERENCES p "+deferred+"); CREATE TABLE o (a PRIMARY KEY)")
		tx := w.Begin()
		w.Done(tx, "INSERT INTO p VALUES (7), (8)")
		w.Done(tx, "INSERT INTO o VALUES (1)")
		require.NoError(t, tx.Commit(t.Context()))
		w.Exec("INSERT INTO k VALUES ('theirs', 7)")
		rep, err := w.Session.Revert(t.Context(), tx.ID(), revert.Options{})
		require.ErrorIs(t, err, agent.ErrPartialRevert)
		require.Len(t, rep.NotReverted(), left, deferred)
		require.Len(t, w.file.query("SELECT a FROM k"), 1)
		require.Equal(t, [][]any{{int64(7)}}, w.file.query("SELECT id FROM p WHERE id = 7"))
		require.Empty(t, w.file.query("SELECT * FROM o"))
	}
}
