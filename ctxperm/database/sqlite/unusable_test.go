package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	handle "github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/ctxperm/database/sqlite"
	"github.com/remit-dev/remit/tool"
)

// TestUnusable checks that a file that is no database, or a table without
// distinguishable rows, is refused with a remedy.
func TestUnusable(t *testing.T) {
	for at, why := range map[string]string{"sqlite:": "names no file", "sqlite::memory:": "names no file", "sqlite:" + t.TempDir(): "not a file", "sqlite:nowhere": "there is no file"} {
		_, err := handle.New([]handle.Kind{sqlite.Kind()}, map[string]string{"main": at})
		require.ErrorContains(t, err, why)
	}
	w := newTestEnv(t, "CREATE TABLE odd (rowid, _rowid_, oid); INSERT INTO odd VALUES (1, 2, 3)")
	out := w.Invoke(w.Begin(), "sql_execute", tool.Args{"sql": "UPDATE odd SET oid = 4"})
	require.Contains(t, out.Error.Why, "give it one")
	w = newTestEnv(t, "CREATE TABLE remit_ops (seq, op); INSERT INTO remit_ops VALUES (0, 'theirs'); CREATE TABLE t (a)")
	out = w.Invoke(w.Begin(), "sql_execute", tool.Args{"sql": "INSERT INTO t VALUES (1)"})
	require.Contains(t, out.Error.Why, "not the one that remit makes")
	require.Empty(t, w.file.query("SELECT * FROM t"))
	out = w.Invoke(w.Begin(), "sql_query", tool.Args{"sql": "SELECT ?", "params": []any{1, 2}})
	require.NotNil(t, out)
}
