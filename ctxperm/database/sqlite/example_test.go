package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/ctxperm/database/sqlite"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// onlyUsers is a policy in Go. The same rule in Rego: allow contains "…" if {
// input.access.resource.table == "users" }.
func onlyUsers(_ context.Context, r perm.Request) (perm.Decision, error) {
	if a := r.Access; a.Resource.Table == "users" || a.Action == perm.Call {
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "users may be changed"}}}), nil
	}
	return perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{{Text: "nothing but users"}}}), nil
}

// A call changes rows, another one is denied its table, and the transaction is
// reverted.
func Example() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// renamed: 1 row
	// denied: true
	// reverted: ann
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file, err := sql.Open("sqlite", filepath.Join(dir, "app.db"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Exec("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO users VALUES (1, 'ann'); CREATE TABLE keys (k)"); err != nil {
		return err
	}

	db, err := handle.New([]handle.Kind{sqlite.Kind()}, map[string]string{"main": "sqlite:" + filepath.Join(dir, "app.db")})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	rt, err := agent.New(agent.Driver(db), agent.Tools(builtin.Databases()...), agent.Policy(perm.EngineFunc(onlyUsers)), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer rt.Close()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		return err
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	out, err := tx.Invoke(ctx, "sql_execute", tool.Args{"database": "main", "sql": "UPDATE users SET name = ? WHERE id = 1", "params": []any{"eve"}})
	if err != nil {
		return err
	}
	fmt.Println("renamed:", len(out.Changes), "row")
	_, err = tx.Invoke(ctx, "sql_query", tool.Args{"database": "main", "sql": "SELECT name FROM users, keys"})
	fmt.Println("denied:", errors.Is(err, tool.ErrDenied))
	rep, err := tx.Revert(ctx, revert.Options{})
	if err != nil {
		return err
	}
	var name string
	err = file.QueryRow("SELECT name FROM users").Scan(&name)
	fmt.Printf("%s: %s\n", rep.State, name)
	return err
}
