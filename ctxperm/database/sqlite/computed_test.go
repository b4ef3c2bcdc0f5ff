package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
)

// TestComputed checks that generated columns, stored or virtual, at any
// position, and indexes on them do not prevent a revert.
func TestComputed(t *testing.T) {
	for _, schema := range []string{
		"CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, n AS (upper(v)))",
		"CREATE TABLE t (id INTEGER PRIMARY KEY, n AS (upper(v)) UNIQUE, v TEXT)",
		"CREATE TABLE t (n AS (upper(v)), id INTEGER PRIMARY KEY, m AS (v || v) STORED, v TEXT, o AS (n || m))",
		"CREATE TABLE t (n AS (upper(v)) STORED, id PRIMARY KEY, m AS (v || v), v TEXT, o AS (n || m)) WITHOUT ROWID",
		"CREATE TABLE t (n AS (upper(v)), id UNIQUE, v)",
	} {
		w := newTestEnv(t, schema+"; INSERT INTO t(id, v) VALUES (1, 'a'), (2, 'b'), (3, NULL)")
		before := w.Dump()
		tx := w.Committed("UPDATE t SET v = v || 'x' WHERE id < 3", "DELETE FROM t WHERE id = 2", "INSERT INTO t(id, v) VALUES (4, 'd')", "REPLACE INTO t(id, v) VALUES (1, 'r')", "UPDATE t SET id = id + 10")
		after := w.Dump()
		w.Reverted(tx.ID())
		require.Equal(t, before, w.Dump(), schema)
		w.Redone(tx.ID())
		require.Equal(t, after, w.Dump(), schema)
	}
}

// TestLedNowhere checks that a row with a dangling foreign key before the call
// is not restored, and is reported. The other rows are restored.
func TestLedNowhere(t *testing.T) {
	w := newTestEnv(t, "CREATE TABLE p (id INTEGER PRIMARY KEY); INSERT INTO p VALUES (1); CREATE TABLE k (id INTEGER PRIMARY KEY, p REFERENCES p); INSERT INTO k VALUES (1, 1), (2, 99)")
	tx := w.Committed("DELETE FROM k")
	rep, err := w.Session.Revert(t.Context(), tx.ID(), revert.Options{})
	require.Error(t, err)
	require.Len(t, rep.NotReverted(), 1)
	require.Equal(t, "db://main/k/2", rep.NotReverted()[0].Resource)
	require.Equal(t, "1|1\n", w.Rows("k"))
}

// TestNumbers checks that AUTOINCREMENT does not reuse numbers after a revert,
// and that the rows are restored.
func TestNumbers(t *testing.T) {
	w := newTestEnv(t, "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, v); INSERT INTO t(v) VALUES ('a')")
	before := w.Dump()
	tx := w.Committed("INSERT INTO t(v) VALUES ('b'), ('c')")
	w.Reverted(tx.ID())
	require.Equal(t, before, w.Dump())
	w.Committed("INSERT INTO t(v) VALUES ('d')")
	require.Equal(t, "1|a\n4|d\n", w.Rows("t"))
}
