package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

type kind struct{}

// Scheme returns sqlite.
func (kind) Scheme() string { return "sqlite" }

// Open parses sqlite:PATH.
func (kind) Open(at string) (engine.Engine, string, error) {
	path := strings.TrimPrefix(at, "sqlite:")
	if path == "" || strings.HasPrefix(path, ":") {
		return nil, "", errors.New("the location names no file; write sqlite:PATH, such as sqlite:data/app.db (only its own process can use a database in memory)")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, "", err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, "", fmt.Errorf("there is no file %s; make the database first, such as with sqlite3", path)
	case err != nil:
		return nil, "", err
	case !info.Mode().IsRegular():
		return nil, "", fmt.Errorf("%s is not a file", path)
	}
	query := url.Values{"mode": {"rw"}, "_defensive": {"1"}, "_pragma": {"busy_timeout(5000)", "trusted_schema(0)"}}
	dsn := (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: query.Encode()}).String()
	pool, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, "", err
	}
	// A connection has the guard, hooks and switches of one call. A replaced
	// file is visible only to the next connection. So no connection is reused.
	pool.SetMaxIdleConns(-1)
	return &file{pool: pool, path: path}, "sqlite:" + path, nil
}

// file is one database.
type file struct {
	pool *sql.DB
	path string
}

// Close closes all connections.
func (d *file) Close() error { return d.pool.Close() }

// connect opens a connection behind a guard.
func (d *file) connect(ctx context.Context) (*connection, error) {
	conn, err := d.pool.Conn(ctx)
	if err != nil {
		return nil, d.trouble(err)
	}
	c := &connection{Conn: conn, guard: &stmtGuard{}}
	err = conn.Raw(func(dc any) (err error) {
		if c.handle, err = handleOf(dc); err == nil {
			err = c.handle.watch(c.guard)
		}
		return err
	})
	if err == nil {
		_, err = driver.Limit(conn, lib.SQLITE_LIMIT_LENGTH, maxValue)
	}
	if err != nil {
		_ = c.Close()
		return nil, d.trouble(err)
	}
	return c, nil
}

// Close closes the connection, which rolls back what is not committed.
func (c *connection) Close() error {
	c.handle.unwatch()
	return c.Conn.Close()
}

// maxValue bounds the bytes of a value or a row.
const maxValue = 64 << 20

func (d *file) trouble(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("database file %s: %w", filepath.Base(d.path), err)
}

// connection is one connection with its guard and hooks.
type connection struct {
	*sql.Conn
	guard  *stmtGuard
	handle handle
}

// own runs a statement of this package, without the guard.
func (c *connection) own(ctx context.Context, text string, args ...any) error {
	defer c.guard.open()()
	_, err := c.ExecContext(ctx, text, args...)
	return err
}

// rows runs a query of this package, without the guard, and reads all rows.
func (c *connection) rows(ctx context.Context, text string, args ...any) (out [][]any, err error) {
	defer c.guard.open()()
	rows, err := c.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row, err := scan(rows, len(names))
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

func scan(rows *sql.Rows, n int) ([]any, error) {
	row, into := make([]any, n), make([]any, n)
	for i := range row {
		into[i] = &row[i]
	}
	err := rows.Scan(into...)
	for i, v := range row {
		if b, ok := v.([]byte); ok && b == nil {
			row[i] = []byte{} // an empty blob, which is not NULL
		}
	}
	return row, err
}

// quote returns a name in SQL syntax.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
