package sqlite

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine/enginetest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
)

// TestEachStep checks that a caller that is cancelled leaves everything or
// nothing.
func TestEachStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.Exec(`PRAGMA synchronous=OFF; CREATE TABLE p (id INTEGER PRIMARY KEY, v); INSERT INTO p VALUES (1, 'a'), (2, 'b');
		CREATE TABLE k (x PRIMARY KEY, p REFERENCES p ON DELETE CASCADE) WITHOUT ROWID; INSERT INTO k VALUES ('x', 1), ('y', 2)`)
	require.NoError(t, err)
	e, _, err := kind{}.Open("sqlite:" + path)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	dump := func() string {
		var out strings.Builder
		rows, err := db.Query("SELECT 'p', id, v FROM p UNION ALL SELECT 'k', x, p FROM k ORDER BY 1, 2")
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		for rows.Next() {
			var a, b, c any
			require.NoError(t, rows.Scan(&a, &b, &c))
			fmt.Fprintln(&out, a, b, c)
		}
		return out.String()
	}
	enginetest.EachStep(t, e, dump, statcheck.Stride(3), "DELETE FROM p WHERE id = 1", "UPDATE p SET v = 'c'", "INSERT INTO p(v) VALUES ('new') RETURNING id")
}
