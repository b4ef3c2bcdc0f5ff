package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/ctxperm/database/sqlite"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// The sizes of the tables, and the numbers of rows that a call changes.
const (
	smallTable, largeTable    = 1_000, 100_000
	oneRow, someRows, allRows = 1, 100, 10_000
)

// changedRows compares sql_execute and its revert at several sizes. Their cost
// depends on the changed rows, not on the size of the table, and the cost per
// row does not grow.
func changedRows(c clock) ([]promiseRow, error) {
	dir, err := os.MkdirTemp("", "remit-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	tables := map[int]*agent.Session{}
	for _, size := range []int{smallTable, largeTable} {
		s, end, err := tableOf(filepath.Join(dir, fmt.Sprint(size, ".db")), size)
		if err != nil {
			return nil, err
		}
		defer end()
		tables[size] = s
	}
	got := times{}
	few := [][2]int{{smallTable, oneRow}, {largeTable, oneRow}, {smallTable, someRows}, {largeTable, someRows}}
	for round := range 1 + c.rounds*parts { // large ones last: they leave much garbage
		err := changes(tables, few[round%len(few):], got, round > 0, "")
		if err == nil {
			err = changes(tables, few[:round%len(few)], got, round > 0, "")
		}
		if err != nil {
			return nil, err
		}
	}
	for range min(c.rounds, 3) {
		if err := changes(tables, [][2]int{{largeTable, someRows}, {largeTable, allRows}}, got, true, ", last"); err != nil {
			return nil, err
		}
	}
	var rows []promiseRow
	for _, what := range []string{"call", "undo"} {
		rows = append(rows,
			most("rows", what+" of 1 row, table of 100,000 rows to 1,000", got, what+", 1 of 100000", what+", 1 of 1000", 1.5),
			most("rows", what+" of 100 rows, table of 100,000 rows to 1,000", got, what+", 100 of 100000", what+", 100 of 1000", 1.5),
			most("rows", what+" of 10,000 rows to 100", got, what+", 10000 of 100000, last", what+", 100 of 100000, last", 150),
		)
	}
	return rows, nil
}

// changes changes rows of a table several times, and records the times.
func changes(tables map[int]*agent.Session, of [][2]int, got times, counts bool, stage string) error {
	for _, o := range of {
		runtime.GC()
		does, undo, err := changed(tables[o[0]], o[1])
		if err != nil {
			return err
		}
		if name := fmt.Sprintf("%d of %d%s", o[1], o[0], stage); counts {
			got["call, "+name], got["undo, "+name] = append(got["call, "+name], does), append(got["undo, "+name], undo)
		}
	}
	return nil
}

// tableOf creates a database with a table of size rows, and a session on it.
func tableOf(path string, size int) (*agent.Session, func(), error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, nil, err
	}
	_, err = db.Exec(fmt.Sprintf(`CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, n INT);
		WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d) INSERT INTO t SELECT i, 'name ' || i, 0 FROM c`, size))
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, nil, err
	}
	d, err := database.New([]database.Kind{sqlite.Kind()}, map[string]string{"main": "sqlite:" + path})
	if err != nil {
		return nil, nil, err
	}
	rt, err := agent.New(agent.Driver(d), agent.Tools(builtin.Databases()...), agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
	})))
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	s, err := rt.Session(context.Background(), perm.Principal{ID: "ada", Kind: "agent"})
	return s, func() { _, _ = rt.Close(), d.Close() }, err
}

// changed runs one statement in a transaction and reverts it. It returns the
// seconds of both.
func changed(s *agent.Session, rows int) (does, undo float64, err error) {
	ctx := context.Background()
	start := time.Now()
	tx, err := s.Begin(ctx)
	if err != nil {
		return 0, 0, err
	}
	out, err := tx.Invoke(ctx, "sql_execute", tool.Args{"database": "main", "sql": "UPDATE t SET n = n + 1, name = name || '!' WHERE id <= ?", "params": []any{rows}})
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		return 0, 0, err
	}
	if len(out.Changes) != rows {
		return 0, 0, fmt.Errorf("%w: %d rows changed", errAnswer, len(out.Changes))
	}
	done := time.Now()
	_, err = s.Revert(ctx, tx.ID(), revert.Options{})
	return done.Sub(start).Seconds(), time.Since(done).Seconds(), err
}
