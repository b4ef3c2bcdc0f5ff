package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/remit-dev/remit/internal/proof/databasetest"
)

// schema draws tables with every feature that makes a row hard to restore.
func schema(t *rapid.T) string {
	parent := rapid.SampledFrom([]string{
		"CREATE TABLE parent (id int PRIMARY KEY, a text, u text UNIQUE)",
		"CREATE TABLE parent (id numeric PRIMARY KEY, a float8, u timestamptz, g text GENERATED ALWAYS AS (id::text || a::text) STORED)",
		"CREATE TABLE parent (id int, a bytea, u int UNIQUE DEFERRABLE INITIALLY DEFERRED, x int GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (id))",
		"CREATE TABLE parent (id int PRIMARY KEY, a int UNIQUE DEFERRABLE, u text NOT NULL DEFAULT 'u')",
		"CREATE TABLE parent (id int PRIMARY KEY, a int REFERENCES parent ON DELETE CASCADE ON UPDATE SET NULL, u text NOT NULL DEFAULT md5(random()::text) UNIQUE)",
	}).Draw(t, "parent")
	key := "int"
	if strings.Contains(parent, "id numeric") {
		key = "numeric"
	}
	action := rapid.SampledFrom([]string{"CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION", "NO ACTION DEFERRABLE INITIALLY DEFERRED"})
	child := fmt.Sprintf("CREATE TABLE child (x int, y text, p %s REFERENCES parent(id) ON UPDATE %s ON DELETE %s, j jsonb, PRIMARY KEY (y, x))",
		key, strings.TrimSuffix(action.Draw(t, "update"), " DEFERRABLE INITIALLY DEFERRED"), action.Draw(t, "delete"))
	more := rapid.SampledFrom([]string{
		"",
		"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log(a) VALUES (TG_OP || coalesce(NEW.x, 0)); RETURN NEW; END $$; CREATE TRIGGER t BEFORE INSERT OR UPDATE ON child FOR EACH ROW EXECUTE FUNCTION f()",
		"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE child SET j = to_jsonb(NEW) WHERE p = NEW.id; RETURN NULL; END $$; CREATE CONSTRAINT TRIGGER t AFTER UPDATE ON parent DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f(); ALTER TABLE parent ENABLE ALWAYS TRIGGER t",
		"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF pg_trigger_depth() < 3 THEN UPDATE parent SET u = DEFAULT WHERE id >= NEW.id; END IF; RETURN NULL; END $$; CREATE TRIGGER t AFTER UPDATE OR INSERT ON parent FOR EACH ROW EXECUTE FUNCTION f()",
		"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE child SET x = 70 WHERE x = 1; UPDATE child SET x = 1 WHERE x = 2; UPDATE child SET x = 2 WHERE x = 70; RETURN NULL; END $$; CREATE TRIGGER t AFTER UPDATE OR DELETE ON parent EXECUTE FUNCTION f()",
		"INSERT INTO parent(id) VALUES (1), (2); ALTER TABLE parent ADD COLUMN more text NOT NULL DEFAULT 'more', ADD COLUMN gone text; ALTER TABLE parent DROP COLUMN gone",
		"CREATE UNIQUE INDEX i ON child (x) WHERE p IS NOT NULL; CREATE UNIQUE INDEX i2 ON child ((x + p))",
	}).Draw(t, "more")
	return strings.Join([]string{
		parent, child, "CREATE TABLE log (n serial PRIMARY KEY, a text)", more,
		"ALTER TABLE parent OWNER TO agent", "ALTER TABLE child OWNER TO agent", "ALTER TABLE log OWNER TO agent",
	}, ";\n") + ";"
}

// stmt draws a statement. Many fail, which is also useful.
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
		func() string { return fmt.Sprintf("UPDATE parent SET id = 3 - id%s", on("id")) },
		func() string { return fmt.Sprintf("UPDATE parent SET a = %s, id = -id%s", n(), on("id")) },
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

// TestProperty tries some schemas, one after the other in one database.
func TestProperty(t *testing.T) {
	databasetest.Property(t, 25, 4_000, anew(newPlace(t)), schema, stmt)
}
