package sqlite_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm/database/sqlite"
	"github.com/remit-dev/remit/internal/proof/databasetest"
)

type tb = databasetest.T

// testEnv is a database file, another client of it, and a runtime on it.
type testEnv struct {
	*databasetest.Setup
	path string
	file file
}

const users = `CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, age INT);
	INSERT INTO users VALUES (1, 'ann', 30), (2, 'bob', 40), (3, 'cyd', NULL);`

func newTestEnv(t tb, schema string, opts ...agent.Option) *testEnv {
	t.Helper()
	in := "" // in memory if possible: no test here cuts the power
	if _, err := os.Stat("/dev/shm"); err == nil {
		in = "/dev/shm"
	}
	dir, err := os.MkdirTemp(in, "remit-sqlite-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	w := &testEnv{path: filepath.Join(dir, "it's a 100% db?.sqlite")}
	w.file = openFile(t, w.path)
	w.file.Exec(schema)
	w.Setup = databasetest.New(t, sqlite.Kind(), "sqlite:"+w.path, w.file, opts...)
	return w
}

// open is newTestEnv for tests of every kind of database.
func open(t databasetest.T, schema string) *databasetest.Setup { return newTestEnv(t, schema).Setup }

// file is another client of the database.
type file struct {
	t  tb
	db *sql.DB
}

func openFile(t tb, path string) file {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3F").Replace(path)+"?_pragma=busy_timeout(5000)&_pragma=synchronous(off)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return file{t, db}
}

// Exec runs statements.
func (f file) Exec(text string) {
	f.t.Helper()
	_, err := f.db.Exec(text)
	require.NoError(f.t, err, text)
}

// Try runs one statement with the settings of remit.
func (f file) Try(text string) { _, _ = f.db.Exec("PRAGMA foreign_keys=1; " + text) }

// Dump returns every row of every table with its rowid, and the schema. It
// omits the table of remit and the numbers of AUTOINCREMENT.
func (f file) Dump() string {
	f.t.Helper()
	var out strings.Builder
	for _, row := range f.query(`SELECT type, name, +sql FROM sqlite_schema WHERE name NOT LIKE 'remit_%' AND tbl_name NOT LIKE 'remit_%' AND name NOT LIKE 'sqlite_%' ORDER BY rowid`) {
		fmt.Fprintln(&out, row...)
	}
	for _, tab := range f.query(`SELECT name, wr FROM pragma_table_list WHERE schema='main' AND type='table' AND name NOT LIKE 'remit_%' AND name NOT LIKE 'sqlite_%' ORDER BY 1`) {
		fmt.Fprintln(&out, "--", tab[0])
		cols := "+rowid"
		if tab[1] == int64(1) {
			cols = "0"
		}
		for _, c := range f.query(`SELECT name FROM pragma_table_xinfo(?)`, tab[0]) {
			cols += fmt.Sprintf(", typeof(%[1]q), +%[1]q", c[0])
		}
		for _, row := range f.query(fmt.Sprintf("SELECT %s FROM %q ORDER BY 1, 3", cols, tab[0])) {
			fmt.Fprintf(&out, "%q\n", row)
		}
	}
	return out.String()
}

// Rows returns the rows of one table.
func (f file) Rows(table string) string {
	f.t.Helper()
	var out strings.Builder
	for _, row := range f.query("SELECT * FROM " + table + " ORDER BY 1") {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = fmt.Sprint(v)
		}
		fmt.Fprintln(&out, strings.Join(line, "|"))
	}
	return out.String()
}

// Sound reports whether all foreign keys are valid.
func (f file) Sound() bool { return len(f.query("SELECT * FROM pragma_foreign_key_check")) == 0 }

func (f file) query(text string, args ...any) (out [][]any) {
	f.t.Helper()
	rows, err := f.db.Query(text, args...)
	require.NoError(f.t, err, text)
	defer func() { require.NoError(f.t, rows.Close()) }()
	names, err := rows.Columns()
	require.NoError(f.t, err)
	for rows.Next() {
		row, into := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		require.NoError(f.t, rows.Scan(into...))
		out = append(out, row)
	}
	require.NoError(f.t, rows.Err())
	return out
}
