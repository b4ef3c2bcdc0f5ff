// Package databasetest tests kinds of databases: a revert or a redo restores
// all changes of a call, and keeps later changes of other actors.
package databasetest

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// T is a test, also one of rapid.
type T interface {
	require.TestingT
	Helper()
	Cleanup(f func())
	Skip(args ...any)
}

// Foreign is another user of the database.
type Foreign interface {
	// Exec runs statements that must succeed.
	Exec(text string)
	// Try runs a statement that may fail, and then leaves nothing.
	Try(text string)
	// Dump returns every row of every table, and the schema.
	Dump() string
	// Rows returns the rows of one table, in order, a line each with | between
	// values.
	Rows(table string) string
	// Sound reports whether each foreign key has a target.
	Sound() bool
}

// Setup is a database named main, another user of it, and a runtime.
type Setup struct {
	Foreign

	T       T
	Journal journal.Journal
	Runtime *agent.Runtime
	Session *agent.Session
	Policy  func(perm.Request) bool // nil: everything is allowed

	kind handle.Kind
	at   string
}

// New returns a World with a new runtime.
func New(t T, kind handle.Kind, at string, other Foreign, opts ...agent.Option) *Setup {
	w := &Setup{Foreign: other, T: t, Journal: journal.Memory(), kind: kind, at: at}
	w.Start(opts...)
	return w
}

// Start creates another runtime on the same database and journal, like another
// process.
func (w *Setup) Start(opts ...agent.Option) { w.StartAt(w.at, opts...) }

// StartAt creates one whose database has another location.
func (w *Setup) StartAt(at string, opts ...agent.Option) {
	w.T.Helper()
	d, err := handle.New([]handle.Kind{w.kind}, map[string]string{"main": at})
	require.NoError(w.T, err)
	w.T.Cleanup(func() { require.NoError(w.T, d.Close()) })
	w.Runtime, err = agent.New(append([]agent.Option{
		agent.Tools(builtin.Databases()...), agent.Driver(d), agent.Journal(w.Journal), agent.Log(slog.New(slog.DiscardHandler)),
		agent.Policy(perm.EngineFunc(w.decide)),
	}, opts...)...)
	require.NoError(w.T, err)
	w.T.Cleanup(func() { require.NoError(w.T, w.Runtime.Close()) })
	w.Session, err = w.Runtime.Session(context.Background(), perm.Principal{ID: "coder"})
	require.NoError(w.T, err)
}

func (w *Setup) decide(_ context.Context, r perm.Request) (perm.Decision, error) {
	effect := perm.Allow
	if w.Policy != nil && r.Access.Action != perm.Call && !w.Policy(r) {
		effect = perm.Deny
	}
	return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: "the test's"}}}), nil
}

// Begin begins a transaction.
func (w *Setup) Begin() *agent.Txn {
	w.T.Helper()
	tx, err := w.Session.Begin(context.Background())
	require.NoError(w.T, err)
	return tx
}

// Call runs a statement with one of the tools.
func (w *Setup) Call(tx *agent.Txn, name, text string, params ...any) tool.Outcome {
	w.T.Helper()
	args := tool.Args{"sql": text}
	if len(params) > 0 {
		args["params"] = params
	}
	return w.Invoke(tx, name, args)
}

// Invoke runs one of the tools with arguments.
func (w *Setup) Invoke(tx *agent.Txn, name string, args tool.Args) tool.Outcome {
	w.T.Helper()
	if args["database"] == nil {
		args["database"] = "main"
	}
	out, _ := tx.Invoke(context.Background(), name, args) // the outcome contains the error
	return out
}

// Execute runs a statement that changes something, or fails.
func (w *Setup) Execute(tx *agent.Txn, text string) tool.Outcome {
	w.T.Helper()
	return w.Call(tx, "sql_execute", text)
}

// Done runs a statement that must succeed.
func (w *Setup) Done(tx *agent.Txn, text string, params ...any) tool.Outcome {
	w.T.Helper()
	out := w.Call(tx, "sql_execute", text, params...)
	require.Equal(w.T, tool.StatusDone, out.Status, "%s: %s", text, out.Text)
	return out
}

// Committed runs statements in their own transaction, which commits.
func (w *Setup) Committed(texts ...string) *agent.Txn {
	w.T.Helper()
	tx := w.Begin()
	for _, text := range texts {
		w.Done(tx, text)
	}
	require.NoError(w.T, tx.Commit(context.Background()))
	return tx
}

// Reverted reverts a whole transaction.
func (w *Setup) Reverted(txn string) {
	w.T.Helper()
	rep, err := w.Runtime.Revert(context.Background(), txn, revert.Options{})
	require.NoError(w.T, err, "%+v", rep.NotReverted())
}

// Redone redoes it.
func (w *Setup) Redone(txn string) {
	w.T.Helper()
	rep, err := w.Runtime.Redo(context.Background(), txn, "ann")
	require.NoError(w.T, err, "%+v", rep.NotReverted())
}

// Shown is a tool's output of rows.
type Shown struct {
	Affected *int64   `json:"affected"`
	Columns  []string `json:"columns"`
	Rows     [][]any  `json:"rows"`
	HasMore  bool     `json:"has_more"`
}

// Show parses it.
func (w *Setup) Show(out tool.Outcome) (s Shown) {
	w.T.Helper()
	require.NoError(w.T, json.Unmarshal(out.Output, &s), "%s", out.Text)
	return s
}
