package sqlite_test

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
		"CREATE TABLE parent (id INTEGER PRIMARY KEY AUTOINCREMENT, a, u UNIQUE)",
		"CREATE TABLE parent (id TEXT COLLATE NOCASE PRIMARY KEY, a BLOB, u UNIQUE) WITHOUT ROWID",
		"CREATE TABLE parent (id PRIMARY KEY, a REAL, u TEXT, UNIQUE (u, a))",
		"CREATE TABLE parent (id UNIQUE, a DATETIME, u BOOLEAN)",
		"CREATE TABLE parent (id INTEGER PRIMARY KEY DESC, a, u)",
		"CREATE TABLE parent (id INTEGER PRIMARY KEY, a REFERENCES parent ON DELETE CASCADE ON UPDATE SET NULL, u UNIQUE)",
		"CREATE TABLE parent (id INTEGER PRIMARY KEY, a REFERENCES parent DEFERRABLE INITIALLY DEFERRED, u UNIQUE ON CONFLICT REPLACE)",
		"CREATE TABLE parent (id PRIMARY KEY, a NOT NULL DEFAULT 'a', u NOT NULL UNIQUE) WITHOUT ROWID",
		"CREATE TABLE parent (id INTEGER PRIMARY KEY, a ANY, u INT UNIQUE) STRICT",
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
		"CREATE TRIGGER t5 AFTER UPDATE ON parent WHEN new.a IS NOT 'again' BEGIN UPDATE OR IGNORE parent SET a = 'again' WHERE id IS new.id OR u IS old.u; END",
		"CREATE TRIGGER t6 AFTER INSERT ON parent BEGIN INSERT INTO log SELECT (SELECT u FROM parent ORDER BY id LIMIT 1), (SELECT u FROM parent ORDER BY id DESC LIMIT 1); UPDATE parent SET u = -77 WHERE id = (SELECT min(id) FROM parent); UPDATE parent SET u = (SELECT a FROM log ORDER BY rowid DESC) WHERE id = (SELECT max(id) FROM parent); UPDATE parent SET u = (SELECT b FROM log ORDER BY rowid DESC) WHERE id = (SELECT min(id) FROM parent); END",
		"CREATE TRIGGER t7 BEFORE UPDATE ON parent BEGIN UPDATE child SET p = NULL WHERE p IS old.id; DELETE FROM parent WHERE id IS old.a; END",
		"INSERT INTO parent(id, a, u) VALUES (1, 1, 1), (2, 2, 2); ALTER TABLE parent ADD COLUMN more TEXT NOT NULL DEFAULT 'more'; ALTER TABLE parent ADD COLUMN gone TEXT; ALTER TABLE parent DROP COLUMN gone",
		"CREATE UNIQUE INDEX i1 ON parent(a) WHERE u IS NOT NULL; CREATE UNIQUE INDEX i2 ON child(x || y COLLATE NOCASE)",
		"CREATE VIEW v AS SELECT id, a FROM parent; CREATE TRIGGER t4 INSTEAD OF INSERT ON v BEGIN REPLACE INTO parent(id, a, u) VALUES (new.id, new.a, new.a); END",
	}).Draw(t, "more")
	return strings.Join([]string{parent, child, "CREATE TABLE log (a, b)", more}, ";\n") + ";"
}

// literal draws a value in SQL syntax.
func literal(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		"NULL", "0", "1", "2", "3", "13", "-1", "1.0", "1.5", "'1'", "'a'", "'A'", "'b'", "''", "x''", "x'00ff'", "'2024-01-02 03:04:05'",
		"9223372036854775807", "-9e999", "0.1", "CAST(x'61006200' AS TEXT)", "CAST(x'ff' AS TEXT)", "zeroblob(20000)", "1e300", "'it''s'",
	}).Draw(t, "value")
}

// stmt draws a statement. Many fail, which is also useful.
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
		func() string { return fmt.Sprintf("UPDATE %s parent SET id = 3 - id%s", or, on("id")) },
		func() string { return fmt.Sprintf("UPDATE %s parent SET a = -id, id = -id%s", or, on("id")) },
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

// TestProperty tries some hundreds of schemas.
func TestProperty(t *testing.T) { databasetest.Property(t, 300, 20_000, open, schema, stmt) }
