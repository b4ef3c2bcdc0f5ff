package postgres_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm/database/postgres"
	"github.com/remit-dev/remit/internal/proof/databasetest"
	"github.com/remit-dev/remit/internal/proof/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

type tb = databasetest.T

const users = `CREATE TABLE users (id int PRIMARY KEY, name text, age int);
	INSERT INTO users VALUES (1, 'ann', 30), (2, 'bob', 40), (3, 'cyd', NULL);
	GRANT SELECT, INSERT, UPDATE, DELETE, TRIGGER ON users TO agent;`

// place is a database and its owner, who uses it beside the runtimes.
type place struct {
	t            tb
	owner, agent string
	conn         *pgx.Conn
}

func newPlace(t tb) *place {
	t.Helper()
	p := &place{t: t}
	p.owner, p.agent = pgtest.Database(t)
	var err error
	p.conn, err = pgx.Connect(context.Background(), p.owner)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.conn.Close(context.Background())) })
	return p
}

// clear drops everything, and lets the role agent use new tables.
func (p *place) clear() {
	p.Exec(`DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO agent;
		ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO agent`)
}

// testEnv is a database, and a runtime that uses it as the role agent.
type testEnv struct {
	*databasetest.Setup
	*place
}

func newTestEnv(t tb, schema string) *testEnv {
	t.Helper()
	return newPlace(t).testEnv(t, schema)
}

func (p *place) testEnv(t tb, schema string, opts ...agent.Option) *testEnv {
	t.Helper()
	at := *p
	at.t = t
	at.Exec(schema)
	return &testEnv{Setup: databasetest.New(t, postgres.Kind(), at.agent, &at, opts...), place: &at}
}

// Exec runs statements.
func (p *place) Exec(text string) {
	p.t.Helper()
	_, err := p.conn.PgConn().Exec(context.Background(), text).ReadAll()
	require.NoError(p.t, err, text)
}

// Try runs one statement.
func (p *place) Try(text string) {
	_, _ = p.conn.PgConn().Exec(context.Background(), text).ReadAll()
}

// Rows returns the rows of one table.
func (p *place) Rows(table string) string { return p.query("SELECT * FROM " + table + " ORDER BY 1") }

// Sound always returns true.
func (*place) Sound() bool { return true }

func (p *place) query(text string) string {
	p.t.Helper()
	r := p.conn.PgConn().ExecParams(context.Background(), text, nil, nil, nil, nil).Read()
	require.NoError(p.t, r.Err, text)
	var out strings.Builder
	for _, row := range r.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = string(v)
		}
		out.WriteString(strings.Join(line, "|") + "\n")
	}
	return out.String()
}

// Dump returns every row of every table of the schema public, and its triggers.
func (p *place) Dump() string {
	p.t.Helper()
	var out strings.Builder
	for _, name := range strings.Fields(p.query("SELECT quote_ident(relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1")) {
		out.WriteString(name + "\n" + p.query("SELECT x::text FROM "+name+" x ORDER BY 1"))
	}
	out.WriteString(p.query("SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, ordinal_position"))
	out.WriteString(p.query("SELECT tgrelid::regclass, tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2"))
	return out.String()
}

// anew clears a place and creates a test environment there, for tests of every kind of
// database.
func anew(p *place) func(t databasetest.T, schema string) *databasetest.Setup {
	return func(t databasetest.T, schema string) *databasetest.Setup {
		p.clear()
		return p.testEnv(t, schema).Setup
	}
}
