package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// Query reads through a connection that cannot write.
func (d *file) Query(ctx context.Context, s engine.Statement, ask engine.AuthorizeFunc, w engine.Page) (out engine.Rows, err error) {
	c, err := d.connect(ctx)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.own(ctx, "PRAGMA query_only=1"); err != nil {
		return out, d.trouble(err)
	}
	return c.query(ctx, s, ask, w)
}

// query authorizes the accesses of a statement, and runs it restricted to them.
func (c *connection) query(ctx context.Context, s engine.Statement, ask engine.AuthorizeFunc, w engine.Page) (engine.Rows, error) {
	if err := c.decide(ctx, s, ask, false); err != nil {
		return engine.Rows{}, err
	}
	defer c.guard.enforce()()
	return c.run(ctx, s, w)
}

// decide compiles a statement without running it, and authorizes its accesses.
func (c *connection) decide(ctx context.Context, s engine.Statement, ask engine.AuthorizeFunc, writes bool) error {
	if err := single(s.SQL); err != nil {
		return err
	}
	back := c.guard.look(writes)
	stmt, err := c.PrepareContext(ctx, s.SQL)
	if err == nil {
		err = stmt.Close()
	}
	back()
	if err != nil {
		return c.because(err)
	}
	return ask(ctx, c.guard.seen)
}

// because returns the guard's reason instead of SQLite's, which is only "not
// authorized".
func (c *connection) because(err error) error {
	if c.guard.refused != nil {
		return c.guard.refused
	}
	return err
}

// run runs a statement and reads the wanted rows.
func (c *connection) run(ctx context.Context, s engine.Statement, w engine.Page) (out engine.Rows, err error) {
	args, err := arguments(s)
	if err != nil {
		return out, err
	}
	rows, err := c.QueryContext(ctx, s.SQL, args...)
	if err != nil {
		return out, c.because(err)
	}
	defer func() {
		if bad := rows.Close(); err == nil && bad != nil {
			err = c.because(bad)
		}
	}()
	if out.Columns, err = rows.Columns(); err != nil {
		return out, err
	}
	out.Rows = [][]any{}
	size := 0
	for n := 0; rows.Next(); n++ {
		if n < w.Skip {
			continue
		}
		if len(out.Rows) == w.Max {
			out.More = true
			if !c.guard.writes {
				break
			}
			continue // only a statement that ran to its end has changed all its rows
		}
		row, err := scan(rows, len(out.Columns))
		if err != nil {
			return out, err
		}
		if size += sizeOf(row); size > w.Bytes {
			if len(out.Rows) == 0 {
				return out, fmt.Errorf("%w: one row has %d bytes, and the limit is %d: select fewer columns, or parts by substr()", engine.ErrRefused, size, w.Bytes)
			}
			out.More, w.Max = true, len(out.Rows)
			if !c.guard.writes {
				break
			}
			continue
		}
		out.Rows = append(out.Rows, row)
	}
	if err := rows.Err(); err != nil {
		return out, c.because(err)
	}
	return out, nil
}

func sizeOf(row []any) int {
	n := 2
	for _, v := range row {
		switch v := v.(type) {
		case string:
			n += len(v) + 3
		case []byte:
			n += len(v)*4/3 + 16
		default:
			n += 20
		}
	}
	return n
}

// arguments returns the parameters for the driver.
func arguments(s engine.Statement) ([]any, error) {
	var out []any
	for _, v := range s.Args {
		out = append(out, plain(v))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Named)) {
		if len(s.Args) > 0 {
			return nil, fmt.Errorf("%w: parameters are given by position or by name, not both", engine.ErrRefused)
		}
		out = append(out, sql.Named(name, plain(s.Named[name])))
	}
	return out, nil
}

// plain returns a value as SQLite stores it, without booleans.
func plain(v any) any {
	if b, ok := v.(bool); ok {
		if b {
			return int64(1)
		}
		return int64(0)
	}
	return v
}

// single refuses more than one statement. This only improves the error, because
// a second one is restricted to the accesses of the first.
func single(text string) error {
	rest := skipStatement(text)
	for rest != "" {
		switch n := skipSpace(rest); {
		case n > 0:
			rest = rest[n:]
		case rest[0] == ';':
			rest = rest[1:]
		default:
			return fmt.Errorf("%w: there is more than one statement; give one for each call", engine.ErrRefused)
		}
	}
	if skipAll(text) == "" {
		return fmt.Errorf("%w: there is no statement", engine.ErrRefused)
	}
	return nil
}
