package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestPages checks consecutive pages, and the error for too large results.
func TestPages(t *testing.T) {
	w := newTestEnv(t, users)
	tx := w.Begin()
	out, err := tx.Invoke(t.Context(), "sql_query", tool.Args{"database": "main", "sql": "SELECT generate_series(1, 200)", "max_rows": 120, "page": 2})
	require.NoError(t, err)
	require.Len(t, w.Show(out).Rows, 80)
	require.Contains(t, string(out.Output), `"has_more":false`)
	out, err = tx.Invoke(t.Context(), "sql_query", tool.Args{"database": "main", "sql": "SELECT repeat('x', 400000) FROM generate_series(1, 9)"})
	require.NoError(t, err)
	require.Len(t, w.Show(out).Rows, 2)
	require.Contains(t, string(out.Output), `"has_more":true`)
	require.Contains(t, w.Call(tx, "sql_query", "SELECT repeat('x', 2000000)").Error.Why, "the limit is")
	out, _ = tx.Invoke(t.Context(), "sql_query", tool.Args{"database": "main", "sql": "SELECT 1 / (generate_series(1, 200) - 50)", "page": 2})
	require.Contains(t, out.Error.Why, "division by zero")
	out, _ = tx.Invoke(t.Context(), "sql_query", tool.Args{"database": "main", "sql": "SELECT 1", "params": map[string]any{"a": 1}})
	require.Contains(t, out.Error.Why, "by position")
	out, err = tx.Invoke(t.Context(), "sql_execute", tool.Args{"database": "main", "sql": "UPDATE users SET name = repeat('y', 600000) RETURNING name", "max_rows": 2})
	require.NoError(t, err)
	require.Len(t, w.Show(out).Rows, 1)
	_, err = tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err, "images that are kept beside the record")
}
