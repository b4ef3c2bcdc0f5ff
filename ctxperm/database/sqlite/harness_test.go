package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/ctxperm/database/sqlite"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/database"
)

// tb is a test, also one of rapid.
type tb interface {
	require.TestingT
	Helper()
	Cleanup(func())
	Context() context.Context
}

// world is a database file, whatever else looks into it, and a runtime on it.
type world struct {
	t       tb
	path    string
	foreign *sql.DB // somebody else
	journal revert.Journal
	rt      *agent.Runtime
	session *agent.Session
}

const users = `CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, age INT);
	INSERT INTO users VALUES (1, 'ann', 30), (2, 'bob', 40), (3, 'cyd', NULL);`

func newWorld(t tb, schema string, opts ...agent.Option) *world {
	in := "" // in memory where that can be had: nothing here is about power cuts
	if _, err := os.Stat("/dev/shm"); err == nil {
		in = "/dev/shm"
	}
	dir, err := os.MkdirTemp(in, "remit-sqlite-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	w := &world{t: t, path: filepath.Join(dir, "it's a 100% db?.sqlite"), journal: revert.Memory()}
	w.foreign = openFile(t, w.path)
	w.exec(schema)
	w.start(opts...)
	return w
}

func openFile(t tb, path string) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3F").Replace(path)+"?_pragma=busy_timeout(5000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// start makes another runtime on the same database and journal, as another process
// would be.
func (w *world) start(opts ...agent.Option) {
	d, err := handle.New([]handle.Kind{sqlite.Kind()}, map[string]string{"main": "sqlite:" + w.path})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, d.Close()) })
	all := []agent.Option{
		agent.Tools(database.Tools()...), agent.Driver(d), agent.Journal(w.journal), agent.Log(slog.New(slog.DiscardHandler)),
		agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
			return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
		})),
	}
	w.rt, err = agent.New(append(all, opts...)...)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, w.rt.Close()) })
	w.session, err = w.rt.Session(w.t.Context(), perm.Principal{ID: "coder"})
	require.NoError(w.t, err)
}

// exec is somebody else's statement.
func (w *world) exec(text string, args ...any) {
	w.t.Helper()
	_, err := w.foreign.Exec(text, args...)
	require.NoError(w.t, err)
}

// dump is every row of every table with its rowid, and the schema, without what
// remit keeps there and the numbers that AUTOINCREMENT gave out.
func (w *world) dump() string { return dump(w.t, w.foreign) }

func dump(t tb, db *sql.DB) string {
	t.Helper()
	var out strings.Builder
	for _, row := range query(t, db, `SELECT type, name, +sql FROM sqlite_schema WHERE name NOT LIKE 'remit_%' AND tbl_name NOT LIKE 'remit_%' AND name NOT LIKE 'sqlite_%' ORDER BY rowid`) {
		fmt.Fprintln(&out, row...)
	}
	for _, tab := range query(t, db, `SELECT name, wr FROM pragma_table_list WHERE schema='main' AND type='table' AND name NOT LIKE 'remit_%' AND name NOT LIKE 'sqlite_%' ORDER BY 1`) {
		fmt.Fprintln(&out, "--", tab[0])
		cols := "+rowid"
		if tab[1] == int64(1) {
			cols = "0"
		}
		for _, c := range query(t, db, `SELECT name FROM pragma_table_xinfo(?)`, tab[0]) {
			cols += fmt.Sprintf(", typeof(%[1]q), +%[1]q", c[0])
		}
		for _, row := range query(t, db, fmt.Sprintf("SELECT %s FROM %q ORDER BY 1, 3, 5", cols, tab[0])) {
			fmt.Fprintf(&out, "%q\n", row)
		}
	}
	return out.String()
}

func query(t tb, db *sql.DB, text string, args ...any) (out [][]any) {
	t.Helper()
	rows, err := db.Query(text, args...)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	names, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		row, into := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		require.NoError(t, rows.Scan(into...))
		out = append(out, row)
	}
	require.NoError(t, rows.Err())
	return out
}

func (w *world) begin() *agent.Txn {
	tx, err := w.session.Begin(w.t.Context())
	require.NoError(w.t, err)
	return tx
}

// call runs a tool and returns its outcome.
func call(t tb, tx *agent.Txn, name string, args tool.Args) tool.Outcome {
	t.Helper()
	if args["database"] == nil {
		args["database"] = "main"
	}
	out, _ := tx.Invoke(t.Context(), name, args)
	return out
}

// done runs a statement that must be done.
func (w *world) done(tx *agent.Txn, text string, params ...any) tool.Outcome {
	w.t.Helper()
	args := tool.Args{"sql": text}
	if len(params) > 0 {
		args["params"] = params
	}
	out := call(w.t, tx, "sql_execute", args)
	require.Equal(w.t, tool.StatusDone, out.Status, "%s: %s", text, out.Text)
	return out
}

func shown(t tb, out tool.Outcome) (got struct {
	Affected *int64   `json:"affected"`
	Columns  []string `json:"columns"`
	Rows     [][]any  `json:"rows"`
	HasMore  bool     `json:"has_more"`
},
) {
	t.Helper()
	require.NoError(t, json.Unmarshal(out.Output, &got), "%s", out.Text)
	return got
}
