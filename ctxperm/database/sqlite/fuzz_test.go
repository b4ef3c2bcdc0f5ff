package sqlite

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzName checks that SQLite reads a quoted name as exactly that name.
func FuzzName(f *testing.F) {
	for _, seed := range []string{"a", `a"b`, `"; DROP TABLE t; --`, "é", "a b", "select", `""`, "[a]", "`", "'", "\x01"} {
		f.Add(seed)
	}
	db, err := sql.Open("sqlite", ":memory:")
	require.NoError(f, err)
	f.Cleanup(func() { _ = db.Close() })
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || strings.ContainsRune(name, 0) || strings.ToValidUTF8(name, "") != name {
			return // SQLite ends a text at a NUL
		}
		rows, err := db.QueryContext(t.Context(), "SELECT 7 AS "+quote(name))
		require.NoError(t, err)
		defer func() { _ = rows.Close() }()
		cols, err := rows.Columns()
		require.NoError(t, err)
		require.Equal(t, []string{name}, cols)
		require.True(t, rows.Next())
		require.False(t, rows.Next())
		require.NoError(t, rows.Err())
	})
}

// FuzzStatements checks that a text that SQLite accepts as one statement ends
// where SQLite ends it. No unchecked statement can follow.
func FuzzStatements(f *testing.F) {
	for _, seed := range []string{
		"SELECT 1", "SELECT ';'", "SELECT 1;", "SELECT 1; SELECT 2", `SELECT 1 AS "a;b"`, "SELECT 1 AS [a;b]", "SELECT 1 -- ; x", "SELECT 1 /* ; */ + 2; --", "SELECT '''; --'",
		"SELECT `a;`", "-- x\n;SELECT 1", "SELECT '", "/* ", "SELECT 1 /*/ ; */", "SELECT x'3b'",
	} {
		f.Add(seed)
	}
	db, err := sql.Open("sqlite", ":memory:")
	require.NoError(f, err)
	db.SetMaxOpenConns(1)
	f.Cleanup(func() { _ = db.Close() })
	f.Fuzz(func(t *testing.T, text string) {
		rest := skipStatement(text)
		require.True(t, rest == "" || rest[0] == ';' && strings.HasSuffix(text, rest))
		if strings.ContainsRune(text, 0) || len(text) > 200 {
			return
		}
		first := strings.TrimSuffix(text, rest)
		if !compiles(t, db, "EXPLAIN "+first) {
			return
		}
		if skipStatement(first+"\n;") == "" {
			require.True(t, compiles(t, db, "EXPLAIN "+first+"\n ) ("), "%q ends in a comment that covers the rest", first)
			return
		}
		// It is one statement for SQLite too: every later part must compile, so
		// a second statement with an unknown table does not compile.
		require.False(t, compiles(t, db, "EXPLAIN "+first+"\n SELECT * FROM no_such_table WHERE"), "%q", first)
		require.Equal(t, "; SELECT 1", skipStatement(first+"\n; SELECT 1"), "%q", first)
	})
}

func compiles(t *testing.T, db *sql.DB, text string) bool {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), text)
	if err != nil {
		return false
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() { // EXPLAIN has no effect
	}
	return rows.Err() == nil
}
