package databasetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
)

// tables are the initial tables of the conflict tests, in SQL that every kind
// of database understands.
const tables = `CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, n INTEGER);
	INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3);
	CREATE TABLE o (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO o VALUES (1, 1);`

// calls are the calls to revert.
var calls = map[string]string{
	"insert": "INSERT INTO t VALUES (9, 'new', 9)",
	"update": "UPDATE t SET v = 'x' WHERE id = 1",
	"delete": "DELETE FROM t WHERE id = 2",
}

// otherChange is a change by another actor between a call and its revert, and its
// result.
type otherChange struct {
	after   string // the call
	name    string
	does    string
	outcome effect.Outcome
	why     string
}

const again = "DROP TABLE t; CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, n INTEGER); "

var rowChanges = []otherChange{
	{"insert", "nothing", "", effect.Restored, ""},
	{"insert", "changed", "UPDATE t SET n = 7 WHERE id = 9", effect.Conflict, "column n differs"},
	{"insert", "deleted", "DELETE FROM t WHERE id = 9", effect.Already, ""},
	{"insert", "made again alike", "DELETE FROM t WHERE id = 9; INSERT INTO t VALUES (9, 'new', 9)", effect.Restored, ""},
	{"insert", "made again", "DELETE FROM t WHERE id = 9; INSERT INTO t VALUES (9, 'theirs', 9)", effect.Conflict, "column v differs"},
	{"insert", "made again with NULL", "DELETE FROM t WHERE id = 9; INSERT INTO t VALUES (9, NULL, 9)", effect.Conflict, "column v differs"},

	{"update", "nothing", "", effect.Restored, ""},
	{"update", "the same column", "UPDATE t SET v = 'y' WHERE id = 1", effect.Conflict, "column v differs"},
	{"update", "another column", "UPDATE t SET n = 7 WHERE id = 1", effect.Conflict, "column n differs"},
	{"update", "set back", "UPDATE t SET v = 'a' WHERE id = 1", effect.Already, ""},
	{"update", "another row", "UPDATE t SET n = 7 WHERE id = 3", effect.Restored, ""},
	{"update", "deleted", "DELETE FROM t WHERE id = 1", effect.Conflict, "another client deleted the row"},
	{"update", "another key", "UPDATE t SET id = 77 WHERE id = 1", effect.Conflict, "another client deleted the row"},
	{"update", "made again alike", "DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 'x', 1)", effect.Restored, ""},
	{"update", "made again", "DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 'x', 8)", effect.Conflict, "column n differs"},

	{"delete", "nothing", "", effect.Restored, ""},
	{"delete", "made again alike", "INSERT INTO t VALUES (2, 'b', 2)", effect.Already, ""},
	{"delete", "made again", "INSERT INTO t VALUES (2, 'theirs', 2)", effect.Conflict, "another client created the row again"},
	{"delete", "another row with its key", "UPDATE t SET id = 2 WHERE id = 3", effect.Conflict, "another client created the row again"},

	// For a revert, a recreated table equals its rows.
	{"insert", "table made again", again, effect.Already, ""},
	{"update", "table made again", again, effect.Conflict, "another client deleted the row"},
	{"delete", "table made again", again, effect.Restored, ""},
	{"insert", "table made again alike", again + "INSERT INTO t VALUES (9, 'new', 9)", effect.Restored, ""},
	{"update", "table made again alike", again + "INSERT INTO t VALUES (1, 'x', 1)", effect.Restored, ""},
	{"update", "table made again otherwise", again + "INSERT INTO t VALUES (1, 'z', 1)", effect.Conflict, "column v differs"},
	{"delete", "table made again with a rule", "DROP TABLE t; CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE, n INTEGER); INSERT INTO t VALUES (5, 'b', 5)", effect.Conflict, "another row is in the way"},
}

// schemaChanges happen after each kind of call.
var schemaChanges = []otherChange{
	{"", "column added", "ALTER TABLE t ADD COLUMN more INTEGER", effect.Conflict, "other columns"},
	{"", "column dropped", "ALTER TABLE t DROP COLUMN n", effect.Conflict, "other columns"},
	{"", "column renamed", "ALTER TABLE t RENAME COLUMN v TO w", effect.Conflict, "other columns"},
	{"", "columns in another order", "DROP TABLE t; CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, v TEXT)", effect.Conflict, "other columns"},
	{"", "another key", "DROP TABLE t; CREATE TABLE t (id INTEGER, v TEXT, n INTEGER, PRIMARY KEY (id, n))", effect.Conflict, "other columns"},
	{"", "no key", "DROP TABLE t; CREATE TABLE t (id INTEGER, v TEXT, n INTEGER)", effect.Conflict, "other columns"},
	{"", "table dropped", "DROP TABLE t", effect.Conflict, "not there any more"},
	{"", "table renamed", "ALTER TABLE t RENAME TO s", effect.Conflict, "not there any more"},
	{"", "a view of the name", "ALTER TABLE t RENAME TO s; CREATE VIEW t AS SELECT id, v, n FROM s", effect.Conflict, "what has the table's name now is"},
}

// Conflicts makes another actor change a row, or its table, between a call and
// its revert, and again between the revert and the redo. That change stays and
// is reported. If the row is as the call left it or found it, nothing
// conflicts. Another row that the same transaction changed is reverted each
// time.
func Conflicts(t *testing.T, open func(t T, schema string) *Setup) {
	all := rowChanges
	for call := range calls {
		for _, f := range schemaChanges {
			f.after = call
			all = append(all, f)
		}
	}
	for _, f := range all {
		t.Run(f.after+", "+f.name, func(t *testing.T) { f.revert(t, open(t, tables)) })
	}
	for call := range calls {
		t.Run(call+", redo", func(t *testing.T) { redo(t, open(t, tables), call) })
	}
}

func (f otherChange) revert(t *testing.T, w *Setup) {
	found := w.Rows("t")
	tx := w.Committed(calls[f.after], "UPDATE o SET n = 2")
	require.Equal(t, "1|2\n", w.Rows("o"))
	if f.does != "" {
		w.Exec(f.does)
	}
	left := w.Dump()
	theirs := func() string { return w.Rows("t") }
	if f.why == "not there any more" {
		theirs = func() string { return "" }
	}
	was := theirs()
	rep, err := w.Session.Revert(context.Background(), tx.ID(), revert.Options{})
	require.Equal(t, f.outcome == effect.Conflict, err != nil, "%v", err)
	require.Len(t, rep.Items, 2)
	for _, i := range rep.Items {
		if i.Resource == rep.Items[0].Resource {
			require.Equal(t, effect.Restored, i.Outcome, "the row of the other table: %s", i.Why)
			continue
		}
		require.Equal(t, f.outcome, i.Outcome, i.Why)
		require.Contains(t, i.Why, f.why)
	}
	require.Equal(t, "1|1\n", w.Rows("o"))
	switch {
	case f.outcome != effect.Restored:
		require.Equal(t, was, theirs())
	case f.does == "":
		require.Equal(t, found, w.Rows("t"))
	}
	w.Redone(tx.ID())
	if f.outcome != effect.Already {
		require.Equal(t, left, w.Dump(), "redone")
	}
}

func redo(t *testing.T, w *Setup, call string) {
	tx := w.Committed(calls[call], "UPDATE o SET n = 2")
	w.Reverted(tx.ID())
	w.Exec("DELETE FROM t; INSERT INTO t VALUES (1, 'theirs', 1), (2, 'theirs', 2), (9, 'theirs', 9)")
	was := w.Rows("t")
	rep, err := w.Runtime.Redo(context.Background(), tx.ID(), "ann")
	require.Error(t, err)
	require.Len(t, rep.NotReverted(), 1)
	require.Equal(t, was, w.Rows("t"))
	require.Equal(t, "1|2\n", w.Rows("o"))
}
