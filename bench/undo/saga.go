package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// saga has a compensation for each step, registered before the step runs, and
// runs them newest first, each also if another one failed. Compensations are
// closures in memory, as in common libraries. Users who want them to survive
// the process add a workflow engine.
//
// It compensates what the author of a step knew: the bytes, bits, time and
// target of the paths that a file tool names; the rows that an INSERT, UPDATE
// or DELETE of one table changes; the effects of a request on the service. It
// has no compensation for a program or a message, and reports that not all was
// undone. It does not detect changes of other actors. It loses everything when
// its process dies. It knows that only because it records the steps, and then
// reports that it cannot undo. It has no redo.
type saga struct {
	envPaths
	steps []compensation
	rows  *changedRows // of the current step
	lost  bool         // an earlier process had run steps
}

type compensation struct {
	n    int
	undo func() error // nil: there is none
}

func openSaga(p envPaths) (baseline, error) { return &saga{envPaths: p, lost: countSteps(p) > 0}, nil }

func (s *saga) before(n int, st step) error {
	c := compensation{n: n}
	s.rows = nil
	switch st.Do {
	case "write", "edit", "delete", "mkdir", "move":
		var all []func() error
		for _, path := range s.paths(st) {
			back, err := s.keep(filepath.Join(s.Workspace, path))
			if err != nil {
				return err
			}
			all = append(all, back)
		}
		c.undo = func() error {
			var err error
			for _, back := range slices.Backward(all) {
				err = errors.Join(err, back())
			}
			return err
		}
	case "sql":
		c.undo = s.keepRows(st.Script)
	case "put", "remove":
		body, err := s.ask(http.MethodGet, "/items/"+st.Item, "", "")
		if err != nil {
			c.undo = func() error { return s.send(http.MethodDelete, "/items/"+st.Item, "") }
		} else {
			c.undo = func() error { return s.send(http.MethodPut, "/items/"+st.Item, body) }
		}
	case "post":
		c.undo = func() error { return errors.New("the answer that names the item never came") }
	}
	s.steps = append(s.steps, c)
	return nil
}

func (s *saga) send(method, path, body string) error {
	_, err := s.ask(method, path, body, "")
	return err
}

// after learns the name of a created item. A failed post counts as one without
// effect, because its name is unknown.
func (s *saga) after(_ int, st step, answer string, err error) error {
	if st.Do == "sql" {
		return s.noteRows()
	}
	if st.Do != "post" {
		return nil
	}
	c := &s.steps[len(s.steps)-1]
	var made struct{ ID string }
	switch {
	case err != nil:
		c.undo = func() error { return nil }
	case json.Unmarshal([]byte(answer), &made) == nil:
		c.undo = func() error { return s.send(http.MethodDelete, "/items/"+made.ID, "") }
	}
	return nil
}

// keep reads a path, and all below it, into memory.
func (s *saga) keep(top string) (func() error, error) {
	type kept struct {
		path, target string
		info         fs.FileInfo
		data         []byte
	}
	var all []kept
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		k := kept{path: path}
		if k.info, err = d.Info(); err != nil {
			return err
		}
		switch {
		case d.Type().IsRegular():
			k.data, err = os.ReadFile(path)
		case d.Type()&fs.ModeSymlink != 0:
			k.target, err = os.Readlink(path)
		}
		all = append(all, k)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return func() error { return os.RemoveAll(top) }, nil
	}
	back := func() error {
		err := os.RemoveAll(top)
		for _, k := range all {
			switch {
			case k.info.IsDir():
				err = errors.Join(err, os.Mkdir(k.path, 0o700), os.Chmod(k.path, k.info.Mode()))
			case k.target != "":
				err = errors.Join(err, os.Symlink(k.target, k.path))
			default:
				err = errors.Join(err, os.WriteFile(k.path, k.data, 0o600), os.Chmod(k.path, k.info.Mode()), os.Chtimes(k.path, k.info.ModTime(), k.info.ModTime()))
			}
		}
		return err
	}
	return back, err
}

var changing = regexp.MustCompile(`(?is)^\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)`)

// keepRows reads the whole table that a statement changes: simple, and exact
// for a small table.
func (s *saga) keepRows(statement string) func() error {
	m := changing.FindStringSubmatch(statement)
	if m == nil {
		return nil // no compensation, for example for a schema change
	}
	was, err := s.table(m[1])
	if err != nil {
		return nil
	}
	s.rows = &changedRows{table: m[1], was: was}
	changed := s.rows
	return func() error { return s.putBack(changed) }
}

// changedRows are the rows of a table before a step, and the changed ones among
// them.
type changedRows struct {
	table string
	was   map[int64][]any
	ids   []int64
}

// noteRows finds the rows that a statement changed.
func (s *saga) noteRows() error {
	if s.rows == nil {
		return nil
	}
	is, err := s.table(s.rows.table)
	for id := range is {
		if fmt.Sprint(s.rows.was[id]) != fmt.Sprint(is[id]) {
			s.rows.ids = append(s.rows.ids, id)
		}
	}
	for id := range s.rows.was {
		if is[id] == nil {
			s.rows.ids = append(s.rows.ids, id)
		}
	}
	return err
}

func (s *saga) putBack(rows *changedRows) (err error) {
	for _, id := range rows.ids {
		cells := rows.was[id]
		if cells == nil {
			err = errors.Join(err, s.sql("DELETE FROM "+rows.table+" WHERE rowid = ?", id))
			continue
		}
		marks := strings.TrimSuffix(strings.Repeat("?,", len(cells)), ",")
		err = errors.Join(err, s.sql(fmt.Sprintf("INSERT OR REPLACE INTO %s VALUES (%s)", rows.table, marks), cells...))
	}
	return err
}

func (s *saga) table(name string) (all map[int64][]any, err error) {
	db, err := sql.Open("sqlite", s.Database)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Query("SELECT rowid, * FROM " + name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	cols, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	all = map[int64][]any{}
	for rows.Next() {
		var id int64
		cells, into := make([]any, len(cols)-1), make([]any, len(cols))
		into[0] = &id
		for i := range cells {
			into[i+1] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		all[id] = cells
	}
	return all, rows.Err()
}

func (s *saga) undo() string {
	claim := undone
	if s.lost {
		claim = cannot
	}
	for _, c := range slices.Backward(s.steps) {
		claim = worseOf(claim, c.run())
	}
	s.steps = nil // a compensation runs once
	return claim
}

func (c compensation) run() string {
	if c.undo == nil || c.undo() != nil {
		return partly
	}
	return undone
}

func (s *saga) undoOne(n int) string {
	for i, c := range s.steps {
		if c.n == n {
			s.steps = slices.Delete(s.steps, i, i+1)
			return c.run()
		}
	}
	return cannot
}

func (*saga) redo() string { return cannot }
