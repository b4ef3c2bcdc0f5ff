package sqlite_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// schema draws tables with everything that makes a row hard to put back.
func schema(t *rapid.T) string {
	parent := rapid.SampledFrom([]string{
		"CREATE TABLE parent (id INTEGER PRIMARY KEY AUTOINCREMENT, a, u UNIQUE)",
		"CREATE TABLE parent (id TEXT COLLATE NOCASE PRIMARY KEY, a BLOB, u UNIQUE) WITHOUT ROWID",
		"CREATE TABLE parent (id PRIMARY KEY, a REAL, u TEXT, UNIQUE (u, a))",
		"CREATE TABLE parent (id UNIQUE, a DATETIME, u BOOLEAN)",
		"CREATE TABLE parent (id INTEGER PRIMARY KEY DESC, a, u)",
	}).Draw(t, "parent")
	action := rapid.SampledFrom([]string{"CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION"})
	child := fmt.Sprintf(rapid.SampledFrom([]string{
		"CREATE TABLE child (x, y, p REFERENCES parent(id) ON DELETE %s ON UPDATE %s, g AS (x || '-' || y), PRIMARY KEY (x, y)) WITHOUT ROWID",
		"CREATE TABLE child (x INTEGER, y, p REFERENCES parent(id) ON DELETE %s ON UPDATE %s DEFERRABLE INITIALLY DEFERRED, g AS (y) STORED, PRIMARY KEY (y, x))",
		"CREATE TABLE child (x UNIQUE ON CONFLICT REPLACE, y, p REFERENCES parent(id) ON DELETE %s ON UPDATE %s)",
		"CREATE TABLE child (rowid, x, y, p REFERENCES parent(id) ON DELETE %s ON UPDATE %s, g AS (typeof(y)), CHECK (x IS NOT 13))",
	}).Draw(t, "child"), action.Draw(t, "delete"), action.Draw(t, "update"))
	more := rapid.SampledFrom([]string{
		"",
		"CREATE TRIGGER t1 AFTER INSERT ON child BEGIN INSERT INTO log VALUES (new.x, 'in'); END",
		"CREATE TRIGGER t2 BEFORE DELETE ON parent BEGIN UPDATE log SET b = 'gone' WHERE a = old.a; DELETE FROM child WHERE x = old.a; END",
		"CREATE TRIGGER t3 AFTER UPDATE ON parent BEGIN UPDATE child SET y = new.a WHERE x = old.u; INSERT INTO log VALUES (old.a, new.a); END",
		"CREATE VIEW v AS SELECT id, a FROM parent; CREATE TRIGGER t4 INSTEAD OF INSERT ON v BEGIN REPLACE INTO parent(id, a, u) VALUES (new.id, new.a, new.a); END",
	}).Draw(t, "more")
	return strings.Join([]string{parent, child, "CREATE TABLE log (a, b)", more}, ";\n") + ";"
}

// literal draws a value as SQL writes it.
func literal(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		"NULL", "0", "1", "2", "3", "13", "-1", "1.0", "1.5", "'1'", "'a'", "'A'", "'b'", "''", "x''", "x'00ff'", "'2024-01-02 03:04:05'",
		"9223372036854775807", "-9e999", "0.1", "CAST(x'61006200' AS TEXT)", "CAST(x'ff' AS TEXT)", "zeroblob(20000)", "1e300", "'it''s'",
	}).Draw(t, "value")
}

// stmt draws a statement. Many fail, which is as good.
func stmt(t *rapid.T) string {
	v := func() string { return literal(t) }
	or := rapid.SampledFrom([]string{"", "OR REPLACE", "OR IGNORE", "OR FAIL", "OR ROLLBACK"}).Draw(t, "or")
	where := rapid.SampledFrom([]string{"", " WHERE %s = " + v(), " WHERE %s IS " + v(), " WHERE rowid <= 2", " WHERE typeof(%s) = 'integer'"}).Draw(t, "where")
	on := func(col string) string {
		if strings.Contains(where, "%s") {
			return fmt.Sprintf(where, col)
		}
		return where
	}
	return rapid.SampledFrom([]func() string{
		func() string {
			return fmt.Sprintf("INSERT %s INTO parent(id, a, u) VALUES (%s, %s, %s), (%s, %s, %s)", or, v(), v(), v(), v(), v(), v())
		},
		func() string { return fmt.Sprintf("INSERT %s INTO parent(a, u) VALUES (%s, %s)", or, v(), v()) },
		func() string {
			return fmt.Sprintf("INSERT %s INTO child(x, y, p) SELECT %s, a, id FROM parent", or, v())
		},
		func() string {
			return fmt.Sprintf("INSERT %s INTO child(x, y, p) VALUES (%s, %s, %s)", or, v(), v(), v())
		},
		func() string { return fmt.Sprintf("UPDATE %s parent SET id = %s, a = %s%s", or, v(), v(), on("id")) },
		func() string { return fmt.Sprintf("UPDATE %s parent SET u = a, a = u%s", or, on("a")) },
		func() string { return fmt.Sprintf("UPDATE %s parent SET id = id + 1%s", or, on("a")) },
		func() string { return fmt.Sprintf("UPDATE %s child SET x = y, y = x, p = %s%s", or, v(), on("x")) },
		func() string { return "DELETE FROM parent" + on("id") },
		func() string { return "DELETE FROM child" + on("y") },
		func() string {
			return fmt.Sprintf("INSERT INTO log SELECT * FROM log UNION ALL VALUES (%s, %s)", v(), v())
		},
		func() string { return fmt.Sprintf("INSERT INTO v(id, a) VALUES (%s, %s)", v(), v()) },
		func() string {
			return fmt.Sprintf("INSERT INTO parent(id, a) VALUES (%s, %s) ON CONFLICT DO UPDATE SET a = excluded.a, u = %s", v(), v(), v())
		},
		func() string { return fmt.Sprintf("UPDATE log SET rowid = rowid + 10, a = %s%s", v(), on("b")) },
	}).Draw(t, "statement")()
}

// TestProperty: whatever statements do to whatever tables, taking the transaction
// back leaves the database as it was, bringing it back leaves it as the statements
// did, and any of its calls can be taken back alone with those that lie on it.
func TestProperty(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); os.Getenv("REMIT_LONG") == "" && f.Value.String() == f.DefValue {
		require.NoError(t, f.Value.Set("25"))
		defer func() { require.NoError(t, f.Value.Set(f.DefValue)) }()
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, schema(rt))
		for range rapid.IntRange(0, 12).Draw(rt, "seeds") {
			_, _ = w.foreign.Exec("PRAGMA foreign_keys=1; " + stmt(rt)) // what fails leaves the tables as they are
		}
		states := []string{w.dump()}
		tx := w.begin()
		var calls []string
		for range rapid.IntRange(1, 8).Draw(rt, "statements") {
			text := stmt(rt)
			out := call(rt, tx, "sql_execute", tool.Args{"sql": text})
			rt.Logf("%s: %s", out.Status, text)
			if out.Status != tool.StatusDone {
				require.Equal(rt, tool.StatusFailed, out.Status, "%s: %s", text, out.Text)
				require.Equal(rt, states[len(states)-1], w.dump(), text)
				continue
			}
			calls, states = append(calls, out.Call), append(states, w.dump())
		}
		require.NoError(rt, tx.Commit(rt.Context()))
		if len(calls) > 1 {
			n := rapid.IntRange(0, len(calls)-1).Draw(rt, "one")
			rep, err := w.session.Undo(rt.Context(), tx.ID(), revert.Undoing{Calls: calls[n : n+1]})
			if err == nil && n == len(calls)-1 {
				require.Equal(rt, states[n], w.dump(), "the last call alone")
			}
			if err != nil {
				require.ErrorIs(rt, err, agent.ErrPartial, "%v", rep)
			}
			if rep.Undo != "" {
				_, err = w.rt.Redo(rt.Context(), rep.Undo, "ann")
				require.NoError(rt, err)
			}
			require.Equal(rt, states[len(states)-1], w.dump(), "a call taken back and brought back")
		}
		rep, err := w.session.Revert(rt.Context(), tx.ID())
		require.NoError(rt, err, "%+v", rep.NotUndone())
		require.Equal(rt, states[0], w.dump())
		_, err = w.rt.Redo(rt.Context(), tx.ID(), "ann")
		require.NoError(rt, err)
		require.Equal(rt, states[len(states)-1], w.dump())
	})
}
