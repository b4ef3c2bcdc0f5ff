package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
)

// TestQuery checks the values of each type, and consecutive pages.
func TestQuery(t *testing.T) {
	w := newTestEnv(t, users)
	tx := w.Begin()
	got := w.Show(w.Invoke(tx, "sql_query", tool.Args{"sql": "SELECT id, name, age FROM users WHERE id <= ? ORDER BY id", "params": []any{3}, "max_rows": 2}))
	require.Equal(t, []string{"id", "name", "age"}, got.Columns)
	require.Equal(t, [][]any{{1.0, "ann", 30.0}, {2.0, "bob", 40.0}}, got.Rows)
	require.True(t, got.HasMore)
	got = w.Show(w.Invoke(tx, "sql_query", tool.Args{"sql": "SELECT id, name, age FROM users ORDER BY id", "max_rows": 2, "page": 2}))
	require.Equal(t, [][]any{{3.0, "cyd", nil}}, got.Rows)
	require.False(t, got.HasMore)

	got = w.Show(w.Invoke(tx, "sql_query", tool.Args{
		"sql":    "SELECT :i, :r, :t, :b, :n, typeof(:f), :f, 9e999, CAST(x'ff' AS TEXT), 9223372036854775807",
		"params": map[string]any{"i": 7, "r": 1.5, "t": "é\x00x", "b": map[string]any{"base64": "AP8="}, "n": nil, "f": true},
	}))
	require.Equal(t, []any{7.0, 1.5, "é\x00x", map[string]any{"base64": "AP8="}, nil, "integer", 1.0, "+Inf", map[string]any{"base64": "/w=="}, 9223372036854775807.0}, got.Rows[0])
}

// TestQueryRefuses checks that a text that is not one reading statement does
// not run, and changes nothing.
func TestQueryRefuses(t *testing.T) {
	w := newTestEnv(t, users+`CREATE VIRTUAL TABLE words USING fts5(body); INSERT INTO words VALUES ('hello world');`)
	before, tx := w.Dump(), w.Begin()
	for text, why := range map[string]string{
		"DELETE FROM users":                                 "a query only reads",
		"WITH x AS (SELECT 1) UPDATE users SET age = 1":     "a query only reads",
		"INSERT INTO users(name) VALUES ('x') RETURNING id": "a query only reads",
		"SELECT 1; DELETE FROM users":                       "more than one statement",
		"SELECT ';' /* ; */ -- ;\n ; SELECT 2":              "more than one statement",
		"CREATE TABLE x (a)":                                "changes the schema",
		"DROP TABLE users":                                  "changes the schema",
		"PRAGMA journal_mode=delete":                        "of the PRAGMAs",
		"PRAGMA user_version=3":                             "of the PRAGMAs",
		"ATTACH '/tmp/x' AS y":                              "cannot be attached",
		"VACUUM INTO '/tmp/x'":                              "cannot be attached",
		"BEGIN":                                             "by the call itself",
		"SAVEPOINT x":                                       "by the call itself",
		"SELECT load_extension('x')":                        "reaches outside",
		"SELECT * FROM remit_ops":                           "no such table",
		"SELECT * FROM sqlite_dbpage":                       "past all grants",
		"SELECT * FROM nowhere":                             "no such table",
		"SELEC":                                             "syntax error",
		" -- nothing":                                       "no statement",
		"ANALYZE":                                           "changes the schema",
		"SELECT ?":                                          "missing argument",
		"SELECT hex(zeroblob(60000000))":                    "too big",
		"SELECT printf('%2000000s', 'x')":                   "the limit is",
		"INSERT INTO words(words) VALUES('rebuild')":        "a query only reads",
		"CREATE TEMP TABLE x AS SELECT * FROM users":        "changes the schema",
		"SELECT * FROM pragma_wal_checkpoint":               "",
		"EXPLAIN DELETE FROM users":                         "a query only reads",
		"REINDEX":                                           "changes the schema",
		"ALTER TABLE users RENAME TO y":                     "changes the schema",
		"SELECT * FROM pragma_user_version":                 "of the PRAGMAs",
		"SELECT * FROM dbstat":                              "past all grants",
		"SELECT fts3_tokenizer('simple')":                   "",
		"UPDATE sqlite_schema SET sql = 'x'":                "",
		"SELECT writefile('/tmp/x', 'y')":                   "",
		"WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n FROM x WHERE n < 1) SELECT * FROM x; SELECT 1": "more than one",
	} {
		out := w.Invoke(tx, "sql_query", tool.Args{"sql": text})
		require.NotEqual(t, tool.StatusDone, out.Status, "%s: %s", text, out.Output)
		require.NotNil(t, out.Error, text)
		require.Contains(t, out.Error.Why, why, text)
	}
	require.Equal(t, before, w.Dump())
	for _, text := range []string{
		"SELECT 1;", "SELECT 'a;b';  -- x", "SELECT * FROM pragma_table_info('users')", "PRAGMA table_info(users)", "PRAGMA user_version",
		"SELECT * FROM words WHERE words MATCH 'hello'", "SELECT value FROM json_each('[1,2]')", "EXPLAIN QUERY PLAN SELECT * FROM users",
		"SELECT count(*) FROM sqlite_schema", "VALUES (1), (2)", "SELECT [name;] FROM (SELECT 1 AS [name;])",
	} {
		out := w.Invoke(tx, "sql_query", tool.Args{"sql": text})
		require.Equal(t, tool.StatusDone, out.Status, "%s: %s", text, out.Text)
	}
}
