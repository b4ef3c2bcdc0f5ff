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

// Scheme is sqlite.
func (kind) Scheme() string { return "sqlite" }

// Open takes sqlite:PATH.
func (kind) Open(at string) (engine.Engine, string, error) {
	path := strings.TrimPrefix(at, "sqlite:")
	if path == "" || strings.HasPrefix(path, ":") {
		return nil, "", errors.New("it names no file: write sqlite:PATH, such as sqlite:data/app.db; a database in memory is nobody's but its process's")
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
	// A connection has a gate, hooks and switches of one call, and a file that is
	// replaced is seen by the next one: none is used twice.
	pool.SetMaxIdleConns(-1)
	return &file{pool: pool, path: path}, "sqlite:" + path, nil
}

// file is one database.
type file struct {
	pool *sql.DB
	path string
}

// Close ends all connections.
func (d *file) Close() error { return d.pool.Close() }

// connect opens a connection behind a gate.
func (d *file) connect(ctx context.Context) (*connection, error) {
	conn, err := d.pool.Conn(ctx)
	if err != nil {
		return nil, d.trouble(err)
	}
	c := &connection{Conn: conn, gate: &stmtGuard{}}
	err = conn.Raw(func(dc any) (err error) {
		if c.handle, err = handleOf(dc); err == nil {
			err = c.handle.watch(c.gate)
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

// Close ends the connection; what is not committed is rolled back.
func (c *connection) Close() error {
	c.handle.unwatch()
	return c.Conn.Close()
}

// maxValue is how many bytes a value or a row may have.
const maxValue = 64 << 20

func (d *file) trouble(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("database file %s: %w", filepath.Base(d.path), err)
}

// connection is one connection with what watches it.
type connection struct {
	*sql.Conn
	gate   *stmtGuard
	handle handle
}

// own runs a statement of this package, past the gate.
func (c *connection) own(ctx context.Context, text string, args ...any) error {
	defer c.gate.open()()
	_, err := c.ExecContext(ctx, text, args...)
	return err
}

// rows runs a query of this package, past the gate, and reads all of it.
func (c *connection) rows(ctx context.Context, text string, args ...any) (out [][]any, err error) {
	defer c.gate.open()()
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

// quote is a name as SQL takes it.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
