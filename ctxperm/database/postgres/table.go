package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// table describes a table.
type table struct {
	engine.Table
	oid, sql  string
	kind      string
	owned     bool     // the role may disable its triggers
	triggers  []string // its own enabled triggers, in SQL syntax, with their mode: O, A
	how       []string
	generated []int    // columns whose values the server always generates
	full      []bool   // per column: NOT NULL
	types     []string // per column
	may       rights
}

// rights are the role's rights to a table: to each column, and to rows.
type rights struct {
	read, insert, update []bool
	remove               bool
}

// describe reads the description of a table. It refuses nothing yet.
func (c *connection) describe(ctx context.Context, name string) (*table, error) {
	t := &table{Table: engine.Table{Name: name}, sql: split(name)}
	rows, err := c.all(ctx, `SELECT oid::text, relkind::text, pg_has_role(relowner, 'USAGE')::text, relhasrules::text, relispartition::text, has_table_privilege(oid, 'DELETE')::text
		FROM pg_class WHERE oid = to_regclass($1)`, t.sql)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("table %s: %w", name, engine.ErrNoTable)
	}
	t.oid, t.kind, t.owned = rows[0][0], rows[0][1], rows[0][2] == "true"
	t.may.remove = rows[0][5] == "true"
	if t.kind == "r" && (rows[0][3] == "true" || rows[0][4] == "true") {
		t.kind = "table with rules, or partition,"
	}
	columns, err := c.all(ctx, `SELECT a.attname, (a.attnum = ANY (i.indkey))::text, array_position(i.indkey::int[], a.attnum::int)::text,
		(a.attidentity = 'a')::text, a.attnotnull::text, y.typname,
		has_column_privilege(a.attrelid, a.attnum, 'SELECT')::text, has_column_privilege(a.attrelid, a.attnum, 'INSERT')::text, has_column_privilege(a.attrelid, a.attnum, 'UPDATE')::text
		FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
		WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum`, t.oid)
	if err != nil {
		return nil, err
	}
	place := map[int]string{}
	for i, col := range columns {
		t.Cols, t.full, t.types = append(t.Cols, col[0]), append(t.full, col[4] == "true"), append(t.types, col[5])
		t.may.read, t.may.insert, t.may.update = append(t.may.read, col[6] == "true"), append(t.may.insert, col[7] == "true"), append(t.may.update, col[8] == "true")
		if col[3] == "true" {
			t.generated = append(t.generated, i)
		}
		if col[1] == "true" {
			place[i] = col[2]
			t.Key = append(t.Key, i)
		}
	}
	slices.SortFunc(t.Key, func(a, b int) int { return strings.Compare(fmt.Sprintf("%4s", place[a]), fmt.Sprintf("%4s", place[b])) })
	triggers, err := c.all(ctx, `SELECT tgname, tgenabled::text FROM pg_trigger WHERE tgrelid = $1::oid AND NOT tgisinternal AND tgenabled IN ('O', 'A')`, t.oid)
	for _, g := range triggers {
		if !strings.HasPrefix(g[0], triggerName) {
			t.triggers, t.how = append(t.triggers, quote(g[0])), append(t.how, g[1])
		}
	}
	return t, err
}

// capturable returns an error if the rows of the table could not be restored.
func (t *table) capturable() error {
	switch {
	case t.kind != "r":
		what := map[string]string{"p": "partitioned table", "f": "foreign table", "v": "view", "m": "materialized view"}[t.kind]
		if what == "" {
			what = t.kind
		}
		return fmt.Errorf("%w: %s is a %s, whose rows cannot be put back", engine.ErrRefused, t.Name, what)
	case len(t.Key) == 0:
		return fmt.Errorf("%w: table %s has no primary key, so that a row of it cannot be told from another; give it one", engine.ErrRefused, t.Name)
	case len(t.triggers) > 0 && !t.owned:
		return fmt.Errorf("%w: table %s has triggers, which would fire again for an undo; its owner can switch them off, so let the role be a member of the owner, or change the table without it", engine.ErrRefused, t.Name)
	}
	return nil
}

// checkRevertible returns an error if the role could not revert a change. A revert
// reads and locks the row, which needs the right to change some column, and
// performs the reverse change.
func (t *table) checkRevertible(e event) error {
	missing := ""
	key := e.was != nil && e.will != nil && !slices.Equal(t.Ref(e.was).Key, t.Ref(e.will).Key)
	switch {
	case slices.Contains(t.may.read, false):
		missing = "SELECT"
	case !slices.Contains(t.may.update, true):
		missing = "UPDATE"
	case (e.was == nil || key) && !t.may.remove:
		missing = "DELETE"
	case (e.will == nil || key) && slices.Contains(t.may.insert, false):
		missing = "INSERT"
	case e.was != nil && e.will != nil && !key:
		for i := range e.was {
			if e.was[i] != e.will[i] && !t.may.update[i] {
				missing = "UPDATE (" + quote(t.Cols[i]) + ")"
			}
		}
	}
	if missing == "" {
		return nil
	}
	return fmt.Errorf("%w: the role could not revert a change of %s: GRANT %s ON %s TO the role", engine.ErrRefused, t.Name, missing, t.sql)
}

func (t *table) texts(of string) string {
	var out []string
	for _, c := range t.Cols {
		out = append(out, of+quote(c)+"::text")
	}
	return strings.Join(out, ", ")
}

// tables caches tables within a transaction.
type tables struct {
	c     *connection
	known map[string]*table
}

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

// sameShape returns why recorded rows do not match the current table.
func (t *tables) sameShape(ctx context.Context, want engine.Table) (why string, err error) {
	now, err := t.get(ctx, want.Name)
	switch {
	case errors.Is(err, engine.ErrNoTable):
		return "the table is not there any more", nil
	case err != nil:
		return "", err
	case now.kind != "r":
		return "what has the table's name now is no plain table", nil
	case !slices.Equal(now.Cols, want.Cols) || !slices.Equal(now.Key, want.Key):
		return "the table has other columns than it had then", nil
	default:
		return "", nil
	}
}

// row reads a row by its key, as exact text.
func (t *tables) row(ctx context.Context, ref engine.Ref, locked bool) (engine.Image, error) {
	tab, err := t.get(ctx, ref.Table.Name)
	if err != nil {
		return nil, err
	}
	text := "SELECT " + tab.texts("") + " FROM ONLY " + tab.sql + " WHERE " + tab.where(1)
	if locked {
		text += " FOR UPDATE"
	}
	r := t.c.ExecParams(ctx, text, cells(ref.Key), nil, nil, nil).Read()
	if r.Err != nil {
		return nil, r.Err
	}
	for _, row := range r.Rows {
		image := make(engine.Image, len(row))
		for i, v := range row {
			image[i] = cell(v)
		}
		if slices.Equal(ref.Table.Ref(image).Key, ref.Key) {
			return image, nil
		}
	}
	return nil, nil
}

func (t *table) where(first int) string {
	var out []string
	for i, k := range t.Key {
		out = append(out, fmt.Sprintf("%s = $%d", quote(t.Cols[k]), first+i))
	}
	return strings.Join(out, " AND ")
}

func cell(raw []byte) string {
	if raw == nil {
		return ""
	}
	return "t" + string(raw)
}

func cells(of []string) [][]byte {
	out := make([][]byte, len(of))
	for i, c := range of {
		if c != "" {
			out[i] = []byte(c[1:])
		}
	}
	return out
}
