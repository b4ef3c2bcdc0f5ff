package postgres_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/ctxperm/database/postgres"
	"github.com/remit-dev/remit/internal/pgtest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/database"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// tb is a test, also one of rapid.
type tb interface {
	pgtest.T
	Cleanup(f func())
}

// world is a database, its owner, and a runtime that uses it as the role agent.
type world struct {
	t            tb
	owner, agent string
	journal      revert.Journal
	rt           *agent.Runtime
	session      *agent.Session
	policy       func(perm.Request) bool
}

const users = `CREATE TABLE users (id int PRIMARY KEY, name text, age int);
	INSERT INTO users VALUES (1, 'ann', 30), (2, 'bob', 40), (3, 'cyd', NULL);
	GRANT SELECT, INSERT, UPDATE, DELETE, TRIGGER ON users TO agent;`

func newWorld(t tb, schema string) *world {
	w := &world{t: t, journal: revert.Memory()}
	w.owner, w.agent = pgtest.Database(t)
	pgtest.Exec(t, w.owner, schema)
	w.start()
	return w
}

func (w *world) start(opts ...agent.Option) {
	d, err := handle.New([]handle.Kind{postgres.Kind()}, map[string]string{"main": w.agent})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, d.Close()) })
	w.rt, err = agent.New(append(opts,
		agent.Tools(database.Tools()...), agent.Driver(d), agent.Journal(w.journal), agent.Log(slog.New(slog.DiscardHandler)),
		agent.Policy(perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
			effect := perm.Allow
			if w.policy != nil && r.Access.Action != perm.Call && !w.policy(r) {
				effect = perm.Deny
			}
			return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: "the test's"}}}), nil
		})))...)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, w.rt.Close()) })
	w.session, err = w.rt.Session(context.Background(), perm.Principal{ID: "coder"})
	require.NoError(w.t, err)
}

func (w *world) exec(text string) {
	w.t.Helper()
	pgtest.Exec(w.t, w.owner, text)
}

// dump is every row of every table of the schema public, and its triggers.
func (w *world) dump() string {
	w.t.Helper()
	var out strings.Builder
	for _, name := range strings.Fields(pgtest.Rows(w.t, w.owner, "SELECT quote_ident(relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1")) {
		out.WriteString(name + "\n" + pgtest.Rows(w.t, w.owner, "SELECT x::text FROM "+name+" x ORDER BY 1"))
	}
	out.WriteString(pgtest.Rows(w.t, w.owner, "SELECT tgrelid::regclass, tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2"))
	return out.String()
}

func (w *world) begin() *agent.Txn {
	tx, err := w.session.Begin(context.Background())
	require.NoError(w.t, err)
	return tx
}

func (w *world) call(tx *agent.Txn, name, text string, params ...any) tool.Outcome {
	args := tool.Args{"database": "main", "sql": text}
	if len(params) > 0 {
		args["params"] = params
	}
	out, _ := tx.Invoke(context.Background(), name, args)
	return out
}

func (w *world) done(tx *agent.Txn, text string, params ...any) tool.Outcome {
	w.t.Helper()
	out := w.call(tx, "sql_execute", text, params...)
	require.Equal(w.t, tool.StatusDone, out.Status, "%s: %s", text, out.Text)
	return out
}

func rowsOf(t tb, out tool.Outcome) [][]any {
	t.Helper()
	var got struct {
		Rows [][]any `json:"rows"`
	}
	require.NoError(t, json.Unmarshal(out.Output, &got), "%s", out.Text)
	return got.Rows
}
