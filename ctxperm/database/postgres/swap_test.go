package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/databasetest"
	"github.com/remit-dev/remit/revert"
)

// TestSameRow runs triggers that change the rows for which they fire, and
// others of the same statement, before the changes of that statement are
// recorded.
func TestSameRow(t *testing.T) {
	for _, when := range []string{"TRIGGER a AFTER", "CONSTRAINT TRIGGER a AFTER"} {
		w := newTestEnv(t, `CREATE TABLE t (id int PRIMARY KEY, u int); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 300); ALTER TABLE t OWNER TO agent;
			CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF NEW.u < 100 THEN UPDATE t SET u = u + 100 WHERE id IN (NEW.id, 2); DELETE FROM t WHERE id = 3; INSERT INTO t VALUES (3, 103); UPDATE t SET id = id + 10 WHERE id = 4; END IF;
				RETURN NULL; END $$;
			CREATE `+when+` UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()`)
		before, tx := w.Dump(), w.Begin()
		out := w.Done(tx, "UPDATE t SET u = u + 1 WHERE id < 3")
		require.Len(t, out.Changes, 5)
		after := w.Dump()
		require.Contains(t, after, "(1,102)\n(14,300)\n(2,203)\n(3,103)")
		w.Done(tx, "UPDATE t SET u = u + 7")
		last := w.Dump()
		require.NoError(t, tx.Commit(t.Context()))
		rep, err := w.Session.Revert(t.Context(), tx.ID(), revert.Options{})
		require.NoError(t, err, "%+v", rep.NotReverted())
		require.Equal(t, before, w.Dump())
		_, err = w.Runtime.Redo(t.Context(), tx.ID(), "ann")
		require.NoError(t, err)
		require.Equal(t, last, w.Dump())
	}
}

// TestOneCall runs several statements in one call.
func TestOneCall(t *testing.T) { databasetest.OneCall(t, anew(newPlace(t))) }

// TestSwap exchanges values between rows, for all dependencies and types of
// columns.
func TestSwap(t *testing.T) {
	const rows = "; INSERT INTO t (id, v) VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e');"
	const children = "; INSERT INTO k VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)"
	databasetest.Swap(t, anew(newPlace(t)),
		"CREATE TABLE t (id int PRIMARY KEY, v text UNIQUE)"+rows,
		"CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL UNIQUE)"+rows+"CREATE TABLE k (a int, t int REFERENCES t ON DELETE CASCADE)"+children,
		"CREATE TABLE t (id int PRIMARY KEY, v text UNIQUE, n int GENERATED ALWAYS AS IDENTITY)"+rows+"CREATE TABLE k (a int, t int REFERENCES t)"+children,
	)
}

// TestStays checks that a column that accepts no other value blocks its row.
func TestStays(t *testing.T) {
	for _, typ := range []string{"e NOT NULL", "varchar(1) NOT NULL"} {
		w := newTestEnv(t, `CREATE TYPE e AS ENUM ('a', 'b', 'c'); CREATE TABLE t (id int PRIMARY KEY, v `+typ+` UNIQUE); INSERT INTO t VALUES (1, 'a'), (2, 'b'); GRANT ALL ON t TO agent;
			CREATE TABLE k (t int REFERENCES t ON DELETE CASCADE); INSERT INTO k VALUES (1), (2);
			CREATE FUNCTION turn() RETURNS void LANGUAGE sql AS $$ UPDATE t SET v = 'c' WHERE id = 1; UPDATE t SET v = 'a' WHERE id = 2; UPDATE t SET v = 'b' WHERE id = 1 $$`)
		tx := w.Committed("SELECT turn()")
		was := w.Rows("t")
		require.Equal(t, "1|b\n2|a\n", was)
		rep, err := w.Session.Revert(t.Context(), tx.ID(), revert.Options{})
		require.Error(t, err)
		require.Len(t, rep.NotReverted(), 2)
		require.Equal(t, was, w.Rows("t"))
	}
}

// TestGiven checks that values that the server always generates are restored
// too.
func TestGiven(t *testing.T) {
	w := newTestEnv(t, `CREATE TABLE t (id int PRIMARY KEY, n int GENERATED ALWAYS AS IDENTITY, v text); INSERT INTO t (id, v) VALUES (1, 'a'), (2, 'b'); GRANT ALL ON t TO agent;
		CREATE FUNCTION anew() RETURNS void LANGUAGE sql AS $$ DELETE FROM t WHERE id = 1; INSERT INTO t (id, v) VALUES (1, 'new') $$`)
	before := w.Dump()
	tx := w.Committed("SELECT anew()")
	after := w.Dump()
	require.NotEqual(t, before, after)
	w.Reverted(tx.ID())
	require.Equal(t, before, w.Dump())
	w.Redone(tx.ID())
	require.Equal(t, after, w.Dump())
}

// TestWhole checks that a statement on a whole table is refused when it is
// detected.
func TestWhole(t *testing.T) {
	w := newTestEnv(t, users+`CREATE TABLE mine (a int PRIMARY KEY); ALTER TABLE mine OWNER TO agent;
		CREATE FUNCTION hold() RETURNS int LANGUAGE plpgsql AS 'BEGIN LOCK TABLE users IN SHARE MODE; RETURN 1; END';
		CREATE FUNCTION share() RETURNS int LANGUAGE plpgsql AS 'BEGIN LOCK TABLE mine IN SHARE ROW EXCLUSIVE MODE; RETURN 1; END'; GRANT ALL ON users TO agent`)
	before, tx := w.Dump(), w.Begin()
	for _, text := range []string{"UPDATE users SET age = hold()", "UPDATE users SET age = share()"} {
		out := w.Execute(tx, text)
		require.Contains(t, out.Error.Why, "used the whole table", text)
		require.Equal(t, before, w.Dump())
	}
}
