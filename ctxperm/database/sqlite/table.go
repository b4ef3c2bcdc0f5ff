package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// table describes a table's rows.
type table struct {
	engine.Table
	kind string          // table, view, virtual, shadow
	pick []int           // per column: its index in the row from SQLite; -1: the rowid
	full map[string]bool // NOT NULL columns
}

// tables reads and caches table descriptions, within one transaction.
type tables struct {
	c     *connection
	known map[string]*table
	read  map[string]*sql.Stmt
}

func newTables(c *connection) *tables {
	return &tables{c: c, known: map[string]*table{}, read: map[string]*sql.Stmt{}}
}

// get returns a table by its name in the schema.
func (t *tables) get(ctx context.Context, name string) (*table, error) {
	if found, ok := t.known[name]; ok {
		return found, nil
	}
	found, err := t.c.describe(ctx, name)
	if err == nil {
		t.known[name] = found
	}
	return found, err
}

func (c *connection) describe(ctx context.Context, name string) (*table, error) {
	list, err := c.rows(ctx, `SELECT type, wr FROM pragma_table_list WHERE schema = 'main' AND name = ?`, name)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("table %s: %w", name, engine.ErrNoTable)
	}
	t := &table{Table: engine.Table{Name: name}, full: map[string]bool{}}
	t.kind, _ = list[0][0].(string)
	if t.kind != "table" {
		return t, nil
	}
	columns, err := c.rows(ctx, `SELECT name, pk, hidden, "notnull" FROM pragma_table_xinfo(?, 'main') ORDER BY cid`, name)
	if err != nil {
		return nil, err
	}
	indexed, err := c.rows(ctx, `SELECT 1 FROM pragma_index_list(?, 'main') WHERE origin = 'pk'`, name)
	if err != nil {
		return nil, err
	}
	return t, t.columns(columns, list[0][1] == int64(1), len(indexed) > 0)
}

// columns sets the stored columns. The key of a row is its primary key if the
// table has no rowid or the key is the rowid, else the rowid.
func (t *table) columns(columns [][]any, withoutRowid, indexed bool) error {
	key := map[int64]int{}
	var names []string
	for i, col := range columns {
		name, _ := col[0].(string)
		names = append(names, strings.ToLower(name))
		if hidden, _ := col[2].(int64); hidden != 0 {
			continue // generated
		}
		if pk, _ := col[1].(int64); pk > 0 {
			key[pk] = len(t.Cols)
		}
		t.Cols, t.pick = append(t.Cols, name), append(t.pick, i)
		t.full[name] = col[3] == int64(1)
	}
	if withoutRowid || len(key) == 1 && !indexed {
		for i := int64(1); int(i) <= len(key); i++ {
			t.Key = append(t.Key, key[i])
		}
		return nil
	}
	for _, rowid := range []string{"rowid", "_rowid_", "oid"} {
		if !slices.Contains(names, rowid) {
			t.Cols, t.pick, t.Key = append([]string{rowid}, t.Cols...), append([]int{-1}, t.pick...), []int{0}
			return nil
		}
	}
	return fmt.Errorf("%w: table %s has columns named rowid, _rowid_ and oid and no INTEGER PRIMARY KEY, so that a row of it cannot be told from another; give it one", engine.ErrRefused, t.Name)
}

// image returns a row from SQLite, in the columns of the table.
func (t *table) image(row []any, rowid int64) engine.Image {
	out := make(engine.Image, len(t.pick))
	for i, at := range t.pick {
		if at < 0 {
			out[i] = engine.Cell(rowid)
			continue
		}
		out[i] = engine.Cell(row[at])
	}
	return out
}

func (t *table) keyIs() string {
	var out []string
	for _, k := range t.Key {
		out = append(out, quote(t.Cols[k])+" = ?")
	}
	return strings.Join(out, " AND ")
}

// row reads a row by its exact key. A key that is equal only by a collation or
// as another type is that of another row.
func (t *tables) row(ctx context.Context, ref engine.Ref) (engine.Image, error) {
	tab, err := t.get(ctx, ref.Table.Name)
	if err != nil {
		return nil, err
	}
	defer t.c.guard.open()()
	stmt := t.read[tab.Name]
	if stmt == nil {
		var cols []string
		for _, c := range tab.Cols {
			cols = append(cols, "+"+quote(c)) // the driver converts values with a declared type
		}
		text := "SELECT " + strings.Join(cols, ", ") + " FROM main." + quote(tab.Name) + " WHERE " + tab.keyIs()
		if stmt, err = t.c.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
		t.read[tab.Name] = stmt
	}
	args, err := engine.Values(ref.Key)
	if err != nil {
		return nil, err
	}
	return oneRow(ctx, stmt, args, ref)
}

func oneRow(ctx context.Context, stmt *sql.Stmt, args []any, ref engine.Ref) (found engine.Image, err error) {
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		row, err := scan(rows, len(ref.Table.Cols))
		if err != nil {
			return nil, err
		}
		image := make(engine.Image, len(row))
		for i, v := range row {
			image[i] = engine.Cell(v)
		}
		if slices.Equal(ref.Table.Ref(image).Key, ref.Key) {
			return image, rows.Err()
		}
	}
	return nil, rows.Err()
}

// close closes the prepared statements.
func (t *tables) close() {
	for _, s := range t.read {
		_ = s.Close()
	}
	t.read = map[string]*sql.Stmt{}
}

// sameShape returns why recorded rows do not match the current table.
func (t *tables) sameShape(ctx context.Context, want engine.Table) (why string, err error) {
	now, err := t.get(ctx, want.Name)
	switch {
	case errors.Is(err, engine.ErrNoTable):
		return "the table is not there any more", nil
	case errors.Is(err, engine.ErrRefused):
		return err.Error(), nil
	case err != nil:
		return "", err
	case now.kind != "table":
		return "what has the table's name now is a " + now.kind, nil
	case !slices.Equal(now.Cols, want.Cols) || !slices.Equal(now.Key, want.Key):
		return "the table has other columns than it had then", nil
	default:
		return "", nil
	}
}
