package postgres_test

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
		"CREATE TABLE parent (id int PRIMARY KEY, a text, u text UNIQUE)",
		"CREATE TABLE parent (id numeric PRIMARY KEY, a float8, u timestamptz, g text GENERATED ALWAYS AS (id::text || a::text) STORED)",
		"CREATE TABLE parent (id int, a bytea, u int UNIQUE DEFERRABLE INITIALLY DEFERRED, x int GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (id))",
	}).Draw(t, "parent")
	key := "int"
	if strings.Contains(parent, "numeric") {
		key = "numeric"
	}
	action := rapid.SampledFrom([]string{"CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION", "NO ACTION DEFERRABLE INITIALLY DEFERRED"})
	child := fmt.Sprintf("CREATE TABLE child (x int, y text, p %s REFERENCES parent(id) ON UPDATE %s ON DELETE %s, j jsonb, PRIMARY KEY (y, x))",
		key, strings.TrimSuffix(action.Draw(t, "update"), " DEFERRABLE INITIALLY DEFERRED"), action.Draw(t, "delete"))
	more := rapid.SampledFrom([]string{
		"",
		"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log(a) VALUES (TG_OP || coalesce(NEW.x, 0)); RETURN NEW; END $$; CREATE TRIGGER t BEFORE INSERT OR UPDATE ON child FOR EACH ROW EXECUTE FUNCTION f()",
		"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE child SET j = to_jsonb(NEW) WHERE p = NEW.id; RETURN NULL; END $$; CREATE CONSTRAINT TRIGGER t AFTER UPDATE ON parent DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f(); ALTER TABLE parent ENABLE ALWAYS TRIGGER t",
	}).Draw(t, "more")
	return strings.Join([]string{
		parent, child, "CREATE TABLE log (n serial PRIMARY KEY, a text)", more,
		"ALTER TABLE parent OWNER TO agent", "ALTER TABLE child OWNER TO agent", "ALTER TABLE log OWNER TO agent",
	}, ";\n") + ";"
}

// stmt draws a statement. Many fail, which is as good.
func stmt(t *rapid.T) string {
	v := func() string {
		return rapid.SampledFrom([]string{"NULL", "'0'", "'1'", "'2'", "'3'", "'1.0'", "'é'", "'2024-01-02 03:04:05'", `'\x00ff'`, "'it''s'", "''", "'infinity'", "DEFAULT"}).Draw(t, "value")
	}
	n := func() string {
		return rapid.SampledFrom([]string{"0", "1", "2", "3", "4", "1.0", "-1"}).Draw(t, "number")
	}
	where := rapid.SampledFrom([]string{"", " WHERE %[1]s = " + n(), " WHERE %[1]s > " + n(), " WHERE %[1]s IS NULL"}).Draw(t, "where")
	on := func(col string) string {
		if where == "" {
			return ""
		}
		return fmt.Sprintf(where, col)
	}
	return rapid.SampledFrom([]func() string{
		func() string { return fmt.Sprintf("INSERT INTO parent(id, a, u) VALUES (%s, %s, %s)", n(), v(), v()) },
		func() string {
			return fmt.Sprintf("INSERT INTO parent(id, a) VALUES (%s, %s), (%s, %s)", n(), v(), n(), v())
		},
		func() string {
			return fmt.Sprintf("INSERT INTO parent(id, a) VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET a = excluded.a", n(), v())
		},
		func() string { return fmt.Sprintf("INSERT INTO child(x, y, p) VALUES (%s, %s, %s)", n(), v(), n()) },
		func() string {
			return fmt.Sprintf("INSERT INTO child(x, y, p) SELECT %s, id::text, id FROM parent", n())
		},
		func() string { return fmt.Sprintf("UPDATE parent SET id = id + 10, a = %s%s", v(), on("id")) },
		func() string { return fmt.Sprintf("UPDATE parent SET u = %s%s", v(), on("id")) },
		func() string { return fmt.Sprintf("UPDATE child SET x = x + 1, y = %s, p = %s%s", v(), n(), on("x")) },
		func() string { return "DELETE FROM parent" + on("id") },
		func() string { return "DELETE FROM child" + on("x") },
		func() string {
			return fmt.Sprintf("WITH d AS (DELETE FROM child%s RETURNING y) INSERT INTO log(a) SELECT y FROM d", on("x"))
		},
		func() string {
			return fmt.Sprintf("MERGE INTO parent USING (VALUES (%s)) s(i) ON id = i WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (i)", n())
		},
	}).Draw(t, "statement")()
}

// TestProperty: whatever statements do to whatever tables, taking the transaction
// back leaves the database as it was, and bringing it back as the statements did.
func TestProperty(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); os.Getenv("REMIT_LONG") == "" && f.Value.String() == f.DefValue {
		require.NoError(t, f.Value.Set("4"))
		defer func() { require.NoError(t, f.Value.Set(f.DefValue)) }()
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, schema(rt))
		states, tx := []string{w.dump()}, w.begin()
		var calls []string
		for range rapid.IntRange(2, 12).Draw(rt, "statements") {
			text := stmt(rt)
			out := w.call(tx, "sql_execute", text)
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
			if err != nil {
				require.ErrorIs(rt, err, agent.ErrPartial, "%v", rep)
			} else if n == len(calls)-1 {
				require.Equal(rt, states[n], w.dump(), "the last call alone")
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
