package postgres

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

type kind struct{}

// Scheme returns the schemes of PostgreSQL URLs.
func (kind) Scheme() string { return "postgres postgresql" }

// Open parses a URL.
func (kind) Open(at string) (engine.Engine, string, error) {
	u, err := url.Parse(at)
	if err != nil || !strings.Contains(at, "://") {
		return nil, "", errors.New("it is no URL: write postgres://USER@HOST/DATABASE; a password is best kept in the file that PGPASSFILE names")
	}
	cfg, err := pgx.ParseConfig(at)
	if err != nil { // the error text can contain the password
		return nil, "", errors.New("it is no URL that PostgreSQL takes: write postgres://USER@HOST:PORT/DATABASE")
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	for name, value := range settings {
		cfg.RuntimeParams[name] = value
	}
	return &server{cfg}, public(u, cfg), nil
}

const connectTimeout = 10 * time.Second

// settings make every value have one text, and bound all waits.
var settings = map[string]string{
	"application_name": "remit", "datestyle": "ISO, YMD", "intervalstyle": "postgres", "extra_float_digits": "1",
	"bytea_output": "hex", "timezone": "UTC", "row_security": "off", "client_encoding": "UTF8",
	"lock_timeout": "10s", "idle_in_transaction_session_timeout": "15min", "default_transaction_isolation": "read committed",
}

// public returns the location without its password, and with values from the
// environment.
func public(u *url.URL, cfg *pgx.ConnConfig) string {
	q := u.Query()
	for _, secret := range []string{"password", "sslpassword", "passfile"} {
		q.Del(secret)
	}
	out := url.URL{Scheme: "postgres", User: url.User(cfg.User), Path: "/" + cfg.Database}
	q.Del("user")
	if strings.HasPrefix(cfg.Host, "/") {
		q.Set("host", cfg.Host)
		q.Set("port", strconv.Itoa(int(cfg.Port)))
	} else if q.Get("host") == "" {
		out.Host = cfg.Host + ":" + strconv.Itoa(int(cfg.Port))
	}
	out.RawQuery = q.Encode()
	return out.String()
}

// journals selects the first schema with a journal of revert/postgres in which
// the role may do something.
const journals = `SELECT min(n.nspname) FROM pg_namespace n WHERE has_schema_privilege(n.oid, 'USAGE')
	AND (SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname IN ('journal', 'owners', 'flushes', 'entries', 'scrub')) = 5
	AND EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind = 'r'
		AND (has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE') OR has_table_privilege(c.oid, 'DELETE, TRUNCATE, TRIGGER')))`

// server is one database of a server.
type server struct{ config *pgx.ConnConfig }

// Close does nothing: each operation has its own connection.
func (*server) Close() error { return nil }

func (s *server) connect(ctx context.Context) (*connection, error) {
	conn, err := pgx.ConnectConfig(ctx, s.config.Copy())
	if err != nil {
		return nil, fmt.Errorf("no connection to the database: %w", err)
	}
	c := &connection{PgConn: conn.PgConn(), own: map[string]bool{}}
	who, err := c.one(ctx, "SELECT current_user, (SELECT rolsuper OR rolreplication OR rolbypassrls FROM pg_roles WHERE rolname = current_user)::text, current_setting('is_superuser'), ("+journals+")")
	switch {
	case err != nil:
	case who[1] != "false" || who[2] != "off":
		err = fmt.Errorf("%w: the role %s may do anything, so that nothing would hold it to what is granted; make one of its own: CREATE ROLE agent LOGIN", engine.ErrRefused, who[0])
	case who[3] != "":
		err = fmt.Errorf("%w: the role %s has rights in schema %s, which holds a journal: calls could read or change their own records; make a role of its own: CREATE ROLE agent LOGIN", engine.ErrRefused, who[0], who[3])
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// connection uses the text format in both directions, because every type has
// it.
type connection struct {
	*pgconn.PgConn
	own map[string]bool // tables on which this package created a trigger
}

// close closes the connection, which rolls back. It does not wait long: the
// server detects it itself.
func (c *connection) close() { _ = c.Close(closed()) }

// closed returns a context that has ended: a connection then closes at once.
func closed() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// do runs statements of this package without results and values.
func (c *connection) do(ctx context.Context, texts ...string) error {
	for _, text := range texts {
		if _, err := c.Exec(ctx, text).ReadAll(); err != nil {
			return err
		}
	}
	return nil
}

// all runs a query of this package. NULL is the empty string.
func (c *connection) all(ctx context.Context, text string, args ...string) ([][]string, error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	r := c.ExecParams(ctx, text, values, nil, nil, nil).Read()
	var out [][]string
	for _, row := range r.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = string(v)
		}
		out = append(out, line)
	}
	return out, r.Err
}

func (c *connection) one(ctx context.Context, text string, args ...string) ([]string, error) {
	rows, err := c.all(ctx, text, args...)
	if err == nil && len(rows) != 1 {
		err = errors.New("the database did not answer")
	}
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// arguments returns the parameters as text.
func arguments(s engine.Statement) ([][]byte, error) {
	if len(s.Named) > 0 {
		return nil, fmt.Errorf("%w: PostgreSQL knows parameters by position only: write $1 and give a list", engine.ErrRefused)
	}
	out := make([][]byte, 0, len(s.Args))
	for _, v := range s.Args {
		switch v := v.(type) {
		case nil:
			out = append(out, nil)
		case bool:
			out = append(out, []byte(strconv.FormatBool(v)))
		case int64:
			out = append(out, strconv.AppendInt(nil, v, 10))
		case float64:
			out = append(out, strconv.AppendFloat(nil, v, 'g', -1, 64))
		case string:
			out = append(out, append([]byte{}, v...))
		case []byte:
			out = append(out, []byte(`\x`+hex.EncodeToString(v)))
		default:
			return nil, fmt.Errorf("%w: a parameter of type %T", engine.ErrRefused, v)
		}
	}
	return out, nil
}

// Types with their own form in JSON.
const (
	oidBool, oidBytea, oidInt8, oidInt2, oidInt4, oidJSON = 16, 17, 20, 21, 23, 114
	oidFloat4, oidFloat8, oidNumeric, oidJSONB            = 700, 701, 1700, 3802
)

// value returns the displayed value of a cell.
func value(oid uint32, raw []byte) any {
	if raw == nil {
		return nil
	}
	text := string(raw)
	switch oid {
	case oidBool:
		return text == "t"
	case oidInt2, oidInt4, oidInt8:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case oidFloat4, oidFloat8:
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
	case oidBytea:
		if b, err := hex.DecodeString(strings.TrimPrefix(text, `\x`)); err == nil {
			return b
		}
	case oidNumeric:
		if len(text) <= 38 && json.Valid(raw) {
			return json.RawMessage(append([]byte{}, raw...))
		}
	case oidJSON, oidJSONB:
		if json.Valid(raw) && len(raw) < 1<<16 {
			return json.RawMessage(append([]byte{}, raw...))
		}
	}
	return text
}
