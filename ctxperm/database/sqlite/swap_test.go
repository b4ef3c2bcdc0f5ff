package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSwap: rows that exchanged values which have to be unique, within one statement,
// exchange them again, whatever depends on them and whatever the columns take.
func TestSwap(t *testing.T) {
	for _, schema := range []string{
		"CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE);",
		"CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT NOT NULL UNIQUE) STRICT; CREATE TABLE k (a, t REFERENCES t ON DELETE CASCADE); INSERT INTO k VALUES (1, 1), (2, 2), (3, 3);",
		"CREATE TABLE t (id PRIMARY KEY, u BLOB NOT NULL, UNIQUE (u COLLATE NOCASE)) WITHOUT ROWID; CREATE TABLE k (a, t REFERENCES t ON DELETE SET NULL); INSERT INTO k VALUES (1, 1), (2, 2), (3, 3);",
		"CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE); CREATE TABLE k (a, t REFERENCES t); INSERT INTO k VALUES (1, 1), (2, 2), (3, 3);",
		"CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE); CREATE TABLE k (a, t REFERENCES t ON DELETE RESTRICT); INSERT INTO k VALUES (1, 1), (2, 2), (3, 3);",
		"CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE); CREATE TABLE k (a, u REFERENCES t(u) ON UPDATE CASCADE); INSERT INTO k VALUES (1, 'a'), (2, 'b'), (3, 'c');",
	} {
		w := newWorld(t, schema)
		w.Exec(`PRAGMA foreign_keys=0; INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e'); CREATE TABLE turn (a, b, c); CREATE TRIGGER s AFTER INSERT ON turn BEGIN
			UPDATE t SET u = 'x' WHERE id = 1; UPDATE t SET u = 'a' WHERE id = 2; UPDATE t SET u = 'b' WHERE id = 3; UPDATE t SET u = 'c' WHERE id = 1;
			UPDATE t SET u = 'x' WHERE id = 4; UPDATE t SET u = 'd' WHERE id = 5; UPDATE t SET u = 'e' WHERE id = 4; END`)
		before, tx := w.Dump(), w.Begin()
		w.Done(tx, "INSERT INTO turn VALUES (1, 2, 3)")
		after := w.Dump()
		require.NotEqual(t, before, after)
		require.NoError(t, tx.Commit(t.Context()))
		rep, err := w.Session.Revert(t.Context(), tx.ID())
		require.NoError(t, err, "%s: %+v", schema, rep.NotUndone())
		require.Equal(t, before, w.Dump(), schema)
		_, err = w.Runtime.Redo(t.Context(), tx.ID(), "ann")
		require.NoError(t, err)
		require.Equal(t, after, w.Dump(), schema)

		// Somebody has a value of one ring: those rows stay, and the others go back.
		w.Exec("UPDATE t SET u = 'mine' WHERE id = 2; INSERT INTO t VALUES (9, 'a')")
		rep, err = w.Session.Revert(t.Context(), tx.ID())
		require.Error(t, err)
		require.Equal(t, [][]any{{int64(4), "d"}, {int64(5), "e"}}, w.file.query("SELECT id, u FROM t WHERE id IN (4, 5) ORDER BY id"), "%s: %+v", schema, rep.NotUndone())
		require.Equal(t, [][]any{{int64(1), "c"}, {int64(2), "mine"}, {int64(3), "b"}, {int64(9), "a"}}, w.file.query("SELECT id, u FROM t WHERE id NOT IN (4, 5) ORDER BY id"), schema)
	}
}
