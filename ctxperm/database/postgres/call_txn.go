package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// callTxn is the transaction of one call.
type callTxn struct {
	server  *server
	c       *connection
	tables  *tables
	capture *capture
	history history
	mark    engine.TxnMarker
	changed bool
	failure error
}

// Begin begins the transaction.
func (s *server) Begin(ctx context.Context) (engine.Tx, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.do(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED"); err != nil {
		c.close()
		return nil, err
	}
	w := &callTxn{server: s, c: c, tables: &tables{c, map[string]*table{}}}
	w.capture = newCapture(w.tables)
	return w, nil
}

// Query reads the changes of the call so far. Its plan restricts it to reading.
// A change by a function is recorded like any other.
func (w *callTxn) Query(ctx context.Context, s engine.Statement, ask engine.AuthorizeFunc, win engine.Page) (out engine.Rows, err error) {
	err = w.within(ctx, func() error {
		var before map[string]counted
		if before, _, err = w.capture.counts(ctx); err != nil {
			return err
		}
		if out, err = w.c.query(ctx, s, ask, win); err != nil {
			return err
		}
		after, _, err := w.capture.counts(ctx)
		if err == nil && !same(before, after) {
			err = fmt.Errorf("%w: a query only reads; use sql_execute", engine.ErrRefused)
		}
		return err
	})
	return out, err
}

func same(a, b map[string]counted) bool {
	for name, n := range b {
		if a[name] != n {
			return false
		}
	}
	return true
}

// within runs f in a savepoint: a failure changes nothing.
func (w *callTxn) within(ctx context.Context, f func() error) error {
	if w.failure != nil {
		return w.failure
	}
	if err := w.c.do(ctx, "SAVEPOINT remit"); err != nil {
		w.failure = err
		return err
	}
	err := f()
	end := "RELEASE remit"
	if err != nil {
		end = "ROLLBACK TO remit; RELEASE remit"
		ctx = context.WithoutCancel(ctx)
	}
	if bad := w.c.do(ctx, end); bad != nil {
		w.failure = fmt.Errorf("the transaction of the call is over since a statement failed: %w", errors.Join(err, bad))
		return w.failure
	}
	return err
}

// Execute runs a statement after all accesses of its plan were authorized. If
// triggers or foreign keys also change other tables, it rolls back, watches
// those, and tries again.
func (w *callTxn) Execute(ctx context.Context, s engine.Statement, ask engine.AuthorizeFunc, win engine.Page) (out engine.Rows, err error) {
	if w.failure != nil {
		return out, w.failure
	}
	args, err := arguments(s)
	if err != nil {
		return out, err
	}
	known, err := w.c.planned(ctx, s, args)
	if err != nil {
		return out, err
	}
	if err := ask(ctx, known); err != nil {
		return out, err
	}
	for _, a := range known {
		if a.Statement != "select" {
			if err := w.watch(ctx, a.Table); err != nil {
				return out, err
			}
		}
	}
	for range maxAttempts {
		var missed []string
		err = w.within(ctx, func() error {
			var err error
			out, missed, err = w.attempt(ctx, s.SQL, args, known, ask, win)
			return err
		})
		if !errors.Is(err, errMissed) {
			return out, err
		}
		for _, name := range missed {
			if err := w.watch(ctx, name); err != nil {
				return engine.Rows{}, err
			}
		}
	}
	return engine.Rows{}, err
}

// maxAttempts bounds how often a statement runs to find the tables that it
// changes.
const maxAttempts = 10

var errMissed = fmt.Errorf("%w: it changes other tables each time", engine.ErrRefused)

// watch creates a table's triggers, outside of the savepoint of a statement.
func (w *callTxn) watch(ctx context.Context, name string) error {
	return w.within(ctx, func() error {
		t, err := w.tables.get(ctx, name)
		if err != nil {
			return err
		}
		if t.kind == "v" { // the tables behind it change
			return nil
		}
		if err := t.capturable(); err != nil {
			return err
		}
		return w.capture.watch(ctx, t)
	})
}

func (w *callTxn) attempt(ctx context.Context, text string, args [][]byte, known touched, ask engine.AuthorizeFunc, win engine.Page) (out engine.Rows, missed []string, err error) {
	before, catalog, err := w.capture.counts(ctx)
	if err != nil {
		return out, nil, err
	}
	noted := w.capture.last
	if out, err = page(w.c.ExecParams(ctx, text, args, nil, nil, nil), win); err != nil {
		return out, nil, err
	}
	// Deferred actions happen now, instead of at the commit, and are recorded.
	if err := w.c.do(ctx, "SET CONSTRAINTS ALL IMMEDIATE"); err != nil {
		return out, nil, err
	}
	after, catalogNow, err := w.capture.counts(ctx)
	if err != nil {
		return out, nil, err
	}
	if catalogNow != catalog {
		return out, nil, fmt.Errorf("%w: the statement changed the schema or large objects, which cannot be reverted row by row; run it outside of remit", engine.ErrRefused)
	}
	for name, n := range after {
		if before[name] != n && w.capture.on[name] == nil {
			missed = append(missed, name)
		}
	}
	if len(missed) > 0 {
		w.capture.last = noted
		return out, missed, errMissed
	}
	err = w.check(ctx, before, after, known, ask)
	if err != nil {
		w.capture.last = noted
	}
	return out, nil, err
}

// check compares the recorded changes with the server's counts, and authorizes
// accesses that the plan did not contain.
func (w *callTxn) check(ctx context.Context, before, after map[string]counted, known touched, ask engine.AuthorizeFunc) error {
	events, err := w.capture.take(ctx)
	if err != nil {
		return err
	}
	noted := map[string]counted{}
	var more touched
	for _, e := range events {
		n := noted[e.t.Name]
		switch e.op {
		case "insert":
			n.insert++
		case "update":
			n.update++
		default:
			n.delete++
		}
		noted[e.t.Name] = n
		if err := e.t.checkRevertible(e); err != nil {
			return err
		}
		more.add(writes(e.t.Name, e.op))
	}
	for name, n := range after {
		b, k := before[name], noted[name]
		if (counted{b.insert + k.insert, b.update + k.update, b.delete + k.delete}) != n {
			return fmt.Errorf("%w: it changed rows of %s that its triggers did not see", engine.ErrRefused, name)
		}
	}
	locks, err := w.c.locks(ctx)
	if err != nil {
		return err
	}
	others, err := untrackedChanges(locks, append(known, more...), w.c.own)
	if err != nil {
		return err
	}
	var asked touched
	for _, a := range append(more, others...) {
		if !contains(known, a) {
			asked.add(a)
		}
	}
	if len(asked) > 0 {
		if err := ask(ctx, asked); err != nil {
			return err
		}
	}
	w.history.add(events)
	return nil
}

func contains(all touched, a engine.Access) bool {
	for _, b := range all {
		if a == b {
			return true
		}
	}
	return false
}

// Prepare returns the changed rows, drops the triggers and identifies the
// transaction.
func (w *callTxn) Prepare(ctx context.Context, op string) ([]engine.Change, engine.TxnMarker, error) {
	if w.failure != nil {
		return nil, engine.TxnMarker{}, w.failure
	}
	var out []engine.Change
	for _, row := range w.history.order {
		//mutant:token
		if !row.was.Same(row.will) {
			out = append(out, engine.Change{Ref: row.ref, Was: row.was, Will: row.will})
		}
	}
	if len(out) == 0 {
		return nil, engine.TxnMarker{}, nil
	}
	if err := w.settings(ctx); err != nil {
		return nil, engine.TxnMarker{}, err
	}
	if err := w.capture.end(ctx); err != nil {
		return nil, engine.TxnMarker{}, err
	}
	id, err := w.c.identity(ctx)
	if err != nil {
		return nil, engine.TxnMarker{}, err
	}
	at, err := w.c.one(ctx, "SELECT pg_current_xact_id()::text, pg_backend_pid()::text")
	if err != nil {
		return nil, engine.TxnMarker{}, err
	}
	w.mark = engine.TxnMarker{Identity: id, Op: op, Xid: at[0]}
	if w.mark.Process, err = strconv.ParseInt(at[1], 10, 64); err != nil {
		return nil, engine.TxnMarker{}, err
	}
	w.changed = true
	return out, w.mark, nil
}

// settings refuses images that were written under other settings than those
// that give each value one text.
func (w *callTxn) settings(ctx context.Context) error {
	for _, name := range []string{"datestyle", "intervalstyle", "extra_float_digits", "bytea_output", "timezone"} {
		now, err := w.c.one(ctx, "SELECT current_setting($1)", name)
		if err != nil {
			return err
		}
		if now[0] != settings[name] {
			return fmt.Errorf("%w: it changed the setting %s", engine.ErrRefused, name)
		}
	}
	return nil
}

// Commit makes the changes final.
func (w *callTxn) Commit(ctx context.Context) error {
	if !w.changed {
		w.Rollback()
		return nil
	}
	r, failed := w.c.Exec(ctx, "COMMIT").ReadAll()
	w.Rollback()
	if failed == nil {
		if len(r) == 1 && r[0].CommandTag.String() == "COMMIT" {
			return nil
		}
		return errors.New("the database rolled back instead of committing")
	}
	// A caller that stopped waiting does not know the outcome; the server does.
	switch fate, err := w.server.TxnOutcomeOf(context.WithoutCancel(ctx), w.mark); {
	case err == nil && fate == engine.Committed:
		return nil
	case err == nil && fate == engine.Aborted:
		return fmt.Errorf("the database did not commit: %w", failed)
	default:
		return errors.Join(engine.ErrUndetermined, failed, err)
	}
}

// Rollback closes the connection, which makes the server roll back.
func (w *callTxn) Rollback() {
	if w.failure == nil {
		w.failure = errors.New("the transaction of the call has ended")
	}
	w.c.close()
}

// asPg returns the server's own error.
func asPg(err error) (*pgconn.PgError, bool) {
	var e *pgconn.PgError
	ok := errors.As(err, &e)
	return e, ok
}
