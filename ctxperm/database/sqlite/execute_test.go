package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestExecute: a statement changes rows, each is on the journal with both versions,
// and the transaction takes them back.
func TestExecute(t *testing.T) {
	w := newWorld(t, users)
	before := w.dump()
	tx := w.begin()
	out := w.done(tx, "UPDATE users SET age = age + 1 WHERE age > ?", 10)
	require.EqualValues(t, 2, *shown(t, out).Affected)
	require.Len(t, out.Changes, 2)
	require.Equal(t, "db://main/users/1", out.Changes[0].Resource)
	require.Equal(t, "write", out.Changes[0].Kind)
	require.Equal(t, "applied", out.Verdict.Is)
	out = w.done(tx, "INSERT INTO users(name) VALUES ('dan') RETURNING id, name")
	require.Equal(t, [][]any{{4.0, "dan"}}, shown(t, out).Rows)
	out = w.done(tx, "DELETE FROM users WHERE id = 2")
	require.Equal(t, "delete", out.Changes[0].Kind)
	out = w.done(tx, "UPDATE users SET age = 5 WHERE id = 99")
	require.Empty(t, out.Changes)
	after := w.dump()
	require.NotEqual(t, before, after)
	require.NoError(t, tx.Commit(t.Context()))

	rep, err := w.session.Revert(t.Context(), tx.ID())
	require.NoError(t, err)
	require.Equal(t, revert.RevertedState, rep.State)
	require.Equal(t, before, w.dump())

	// The undo is itself undone, also by a runtime that has only the journal.
	w.start()
	_, err = w.rt.Redo(t.Context(), tx.ID(), "ann")
	require.NoError(t, err)
	require.Equal(t, after, w.dump())
	_, err = w.rt.Revert(t.Context(), tx.ID())
	require.NoError(t, err)
	require.Equal(t, before, w.dump())
}

// TestExecuteFails: what fails leaves nothing, and the transaction goes on.
func TestExecuteFails(t *testing.T) {
	w := newWorld(t, users+`CREATE TABLE strict_t (id INTEGER PRIMARY KEY, u TEXT UNIQUE) STRICT; INSERT INTO strict_t VALUES (1, 'a');
		CREATE VIRTUAL TABLE words USING fts5(body);
		CREATE TRIGGER no BEFORE DELETE ON users WHEN old.id = 1 BEGIN SELECT RAISE(ROLLBACK, 'never'); END;`)
	before := w.dump()
	tx := w.begin()
	for _, text := range []string{
		"INSERT INTO strict_t VALUES (2, 'b'), (3, 'a')", "INSERT OR ROLLBACK INTO strict_t VALUES (2, 'a')", "DELETE FROM users",
		"DROP TABLE users", "CREATE INDEX x ON users(name)", "INSERT INTO words VALUES ('x')", "UPDATE remit_ops SET op = 'x'", "COMMIT",
		"INSERT INTO strict_t VALUES ('x', 'y')", "UPDATE users SET age = 1; COMMIT", "PRAGMA user_version=1", "CREATE TEMP TABLE x(a)",
		"INSERT INTO users VALUES (?, ?, ?)", "UPDATE users SET age = (SELECT 1 UNION SELECT abs(-9223372036854775808))", "VACUUM", "ATTACH ':memory:' AS x",
	} {
		out := call(t, tx, "sql_execute", tool.Args{"sql": text})
		require.Equal(t, tool.StatusFailed, out.Status, "%s: %s", text, out.Text)
		require.Empty(t, out.Changes, text)
		require.Equal(t, before, w.dump(), text)
	}
	w.done(tx, "UPDATE users SET age = 1 WHERE id = 1")
	rep, err := tx.Revert(t.Context())
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, before, w.dump())
}

// TestConflict: what somebody else changed after the call, before the undo, stays,
// row by row, and is said.
func TestConflict(t *testing.T) {
	for name, tt := range map[string]struct {
		call, foreign string
		why           string
		left          string // rows that stay as they are
	}{
		"changed":    {"UPDATE users SET age = 1", "UPDATE users SET name = 'X' WHERE id = 1", "column name is another", "db://main/users/1"},
		"deleted":    {"UPDATE users SET age = 1", "DELETE FROM users WHERE id = 1", "deleted the row", "db://main/users/1"},
		"made again": {"DELETE FROM users", "INSERT INTO users VALUES (1, 'Z', 1)", "made the row again", "db://main/users/1"},
		"columns":    {"UPDATE users SET age = 1 WHERE id = 1", "ALTER TABLE users ADD COLUMN more", "other columns", "db://main/users/1"},
		"table":      {"UPDATE users SET age = 1 WHERE id = 1", "DROP TABLE users", "not there any more", "db://main/users/1"},
		"type":       {"UPDATE users SET age = 1 WHERE id = 1", "UPDATE users SET age = 1.5 WHERE id = 1", "column age", "db://main/users/1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, users)
			tx := w.begin()
			out := w.done(tx, tt.call)
			require.NoError(t, tx.Commit(t.Context()))
			w.exec(tt.foreign)
			rep, err := w.session.Revert(t.Context(), tx.ID())
			require.ErrorIs(t, err, agent.ErrPartial)
			require.Equal(t, revert.RevertedPartial, rep.State)
			require.Len(t, rep.Items, len(out.Changes))
			for _, i := range rep.Items {
				if i.Resource == tt.left {
					require.Equal(t, revert.Conflict, i.Outcome, i.Why)
					require.Contains(t, i.Why, tt.why)
					continue
				}
				require.Equal(t, revert.Restored, i.Outcome, i.Why)
			}
		})
	}
}

// TestLaterConflict: a row that is as before a call only because a later call's
// change of it could not be taken back is not done with: once that can, it is.
func TestLaterConflict(t *testing.T) {
	w := newWorld(t, "CREATE TABLE t (id INTEGER PRIMARY KEY, u UNIQUE)")
	before, tx := w.dump(), w.begin()
	made := w.done(tx, "INSERT INTO t VALUES (1, 'x')")
	w.done(tx, "DELETE FROM t")
	w.done(tx, "INSERT INTO t VALUES (2, 'x')")
	require.NoError(t, tx.Commit(t.Context()))
	rep, err := w.session.Undo(t.Context(), tx.ID(), revert.Undoing{Calls: []string{made.Call}})
	require.ErrorIs(t, err, agent.ErrPartial, "row 2 has the value that row 1 needs")
	require.Len(t, rep.NotUndone(), 2)
	_, err = w.session.Revert(t.Context(), tx.ID())
	require.NoError(t, err)
	require.Equal(t, before, w.dump())
}

// TestNeeded: a row that somebody else's row needs by now stays, and the others go.
func TestNeeded(t *testing.T) {
	for deferred, left := range map[string]int{"": 1, "DEFERRABLE INITIALLY DEFERRED": 2, "ON DELETE CASCADE": 1, "ON DELETE RESTRICT": 1} {
		w := newWorld(t, "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE k (a, p REFERENCES p "+deferred+"); CREATE TABLE o (a PRIMARY KEY)")
		tx := w.begin()
		w.done(tx, "INSERT INTO p VALUES (7), (8)")
		w.done(tx, "INSERT INTO o VALUES (1)")
		require.NoError(t, tx.Commit(t.Context()))
		w.exec("INSERT INTO k VALUES ('theirs', 7)")
		rep, err := w.session.Revert(t.Context(), tx.ID())
		require.ErrorIs(t, err, agent.ErrPartial)
		require.Len(t, rep.NotUndone(), left, deferred)
		require.Len(t, query(t, w.foreign, "SELECT a FROM k"), 1)
		require.Equal(t, [][]any{{int64(7)}}, query(t, w.foreign, "SELECT id FROM p WHERE id = 7"))
		require.Empty(t, query(t, w.foreign, "SELECT * FROM o"))
	}
}
