package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/databasetest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestOneCall runs several statements in one call.
func TestOneCall(t *testing.T) { databasetest.OneCall(t, open) }

// TestSwap exchanges values between rows, for all dependencies and types of
// columns.
func TestSwap(t *testing.T) {
	const rows = "; INSERT INTO t (id, v) VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e');"
	const children = "; INSERT INTO k VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)"
	databasetest.Swap(t, open,
		"CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE)"+rows,
		"CREATE TABLE t (id PRIMARY KEY, v BLOB NOT NULL, UNIQUE (v COLLATE NOCASE)) WITHOUT ROWID"+rows+"CREATE TABLE k (a, t REFERENCES t ON DELETE SET NULL)"+children,
		"CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT NOT NULL UNIQUE) STRICT"+rows+"CREATE TABLE k (a, t REFERENCES t ON DELETE CASCADE)"+children,
		"CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE)"+rows+"CREATE TABLE k (a, t REFERENCES t)"+children,
		"CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE)"+rows+"CREATE TABLE k (a, t REFERENCES t ON DELETE RESTRICT)"+children,
		"CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, n AS (upper(v)) UNIQUE)"+rows,
	)
}

// TestSwapOfReferred exchanges rows to which others refer, and which follow
// them.
func TestSwapOfReferred(t *testing.T) {
	w := newTestEnv(t, `CREATE TABLE t (id INTEGER PRIMARY KEY, u INTEGER UNIQUE NOT NULL, r REAL UNIQUE NOT NULL, b BLOB UNIQUE NOT NULL);
		INSERT INTO t VALUES (1, 1, 1.5, x'01'), (2, 2, 2.5, x'02'); CREATE TABLE k (a, u REFERENCES t(u) ON UPDATE CASCADE); INSERT INTO k VALUES (1, 1), (2, 2);
		CREATE TABLE hold (t REFERENCES t ON DELETE CASCADE); INSERT INTO hold VALUES (1), (2);
		CREATE TABLE turn (a, b, c); CREATE TRIGGER s AFTER INSERT ON turn BEGIN
		UPDATE t SET u = 9, r = 9.5, b = x'09' WHERE id = 1; UPDATE t SET u = 1, r = 1.5, b = x'01' WHERE id = 2; UPDATE t SET u = 2, r = 2.5, b = x'02' WHERE id = 1; END`)
	before := w.Dump()
	tx := w.Committed("INSERT INTO turn VALUES (1, 2, 3)")
	after := w.Dump()
	require.NotEqual(t, before, after)
	w.Reverted(tx.ID())
	require.Equal(t, before, w.Dump())
	w.Redone(tx.ID())
	require.Equal(t, after, w.Dump())
}

// TestStays checks that an index that accepts no other value blocks its row,
// and that nothing is done partially.
func TestStays(t *testing.T) {
	w := newTestEnv(t, `CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT NOT NULL); CREATE UNIQUE INDEX i ON t(json_extract(v, '$.a')); INSERT INTO t VALUES (1, '{"a":1}'), (2, '{"a":2}');
		CREATE TABLE hold (t REFERENCES t ON DELETE CASCADE); INSERT INTO hold VALUES (1), (2); CREATE TABLE turn (a, b, c); CREATE TRIGGER s AFTER INSERT ON turn BEGIN
		UPDATE t SET v = '{"a":9}' WHERE id = 1; UPDATE t SET v = '{"a":1}' WHERE id = 2; UPDATE t SET v = '{"a":2}' WHERE id = 1; END`)
	tx := w.Committed("INSERT INTO turn VALUES (1, 2, 3)")
	was := w.Rows("t")
	rep, err := w.Session.Revert(t.Context(), tx.ID(), revert.Options{})
	require.Error(t, err)
	require.Len(t, rep.NotReverted(), 2)
	require.Equal(t, was, w.Rows("t"))
	require.Empty(t, w.Rows("turn"))
}

// TestOddNames checks that a table with a name that no grant can contain is
// refused.
func TestOddNames(t *testing.T) {
	w := newTestEnv(t, `CREATE TABLE ".." (a)`)
	out := w.Execute(w.Begin(), `INSERT INTO ".." VALUES (1)`)
	require.Equal(t, tool.StatusFailed, out.Status, out.Text)
	require.Contains(t, out.Error.Why, "none that can be granted")
}
