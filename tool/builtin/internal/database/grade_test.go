package database_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // what the worlds are read with

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/ctxperm/database/sqlite"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/reverttest"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/database"
)

// graded is a database of one run.
type graded struct {
	path   string
	driver *handle.Driver // of the process there is
}

func (g *graded) exec(statement string) (err error) {
	db, err := sql.Open("sqlite", g.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.Exec(statement)
	return err
}

func (g *graded) shown() (found map[string]string, err error) {
	db, err := sql.Open("sqlite", g.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Query("SELECT id, quote(v) || '|' || quote(n) FROM t")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	found = map[string]string{}
	for rows.Next() {
		var id int
		var text string
		if err := rows.Scan(&id, &text); err != nil {
			return nil, err
		}
		found["row "+strconv.Itoa(id)] = text
	}
	return found, rows.Err()
}

// process opens the database anew: what the one before had open ended with it.
func (g *graded) process() (_ []agent.Option, err error) {
	g.driver, err = handle.New([]handle.Kind{sqlite.Kind()}, map[string]string{"main": "sqlite:" + g.path})
	return []agent.Option{agent.Driver(g.driver)}, err
}

func (g *graded) close() error {
	if g.driver == nil {
		return nil
	}
	err := g.driver.Close()
	g.driver = nil
	return err
}

// TestGrades: each tool is as good as its grade says, on SQLite. REVERTTEST_UPDATE=1
// writes the grades that the kit finds.
func TestGrades(t *testing.T) {
	dir, worlds := t.TempDir(), 0
	world := func(*reverttest.Wire) (reverttest.TestEnv, error) {
		worlds++
		g := &graded{path: filepath.Join(dir, fmt.Sprint(worlds, ".db"))}
		err := g.exec("PRAGMA synchronous = OFF; CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, n INTEGER); INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
		return reverttest.TestEnv{
			Process: g.process, Snapshot: g.shown, Exit: g.close,
			Foreign: map[string]func() error{"updates row 1": func() error { return g.exec("INSERT OR REPLACE INTO t VALUES (1, 'theirs', 7)") }},
		}, err
	}
	inputs := map[string][]any{
		"sql_query": {tool.Args{"database": "main", "sql": "SELECT * FROM t"}},
		"sql_execute": {
			tool.Args{"database": "main", "sql": "UPDATE t SET v = 'x', n = n + 1"},
			tool.Args{"database": "main", "sql": "DELETE FROM t WHERE id = 1"},
			tool.Args{"database": "main", "sql": "INSERT INTO t VALUES (3, 'c', NULL)"},
		},
	}
	var all []reverttest.Result
	runs := 0
	for _, one := range database.Tools() {
		require.NotEmpty(t, inputs[one.Name()], one.Name())
		r := reverttest.Test(t, one, provenance.CrashUndoable, reverttest.Config{NewEnv: world, Inputs: inputs[one.Name()], Seed: 1, Runs: statcheck.Size(10, 200)})
		all, runs = append(all, r), runs+r.Runs
	}
	reverttest.SaveGrades(t, "grades.json", all...)
	t.Logf("proved: fault kit, database tools: %d tools in %d runs with faults, %d violations", len(all), runs, map[bool]int{true: 1}[t.Failed()])
}
