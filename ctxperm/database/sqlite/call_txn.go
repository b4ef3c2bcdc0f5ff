package sqlite

import (
	"context"
	"errors"
	"fmt"

	lib "modernc.org/sqlite/lib"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/perm"
)

// callTxn is the transaction of one call.
type callTxn struct {
	file    *file
	c       *connection
	tables  *tables
	capture *capture
	history history
	begun   bool
	failure error // error that ended the transaction early
	mark    engine.TxnMarker
	changed bool
}

// Begin connects. The transaction begins with the first authorized statement:
// until then no other client waits for it.
func (d *file) Begin(ctx context.Context) (engine.Tx, error) {
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	w := &callTxn{file: d, c: c, tables: newTables(c)}
	if w.capture, err = c.capture(); err == nil {
		err = c.own(ctx, "PRAGMA foreign_keys=1")
	}
	if err != nil {
		w.Rollback()
		return nil, d.trouble(err)
	}
	return w, nil
}

// Query reads the changes of the call so far.
func (w *callTxn) Query(ctx context.Context, s engine.Statement, ask engine.AuthorizeFunc, win engine.Page) (engine.Rows, error) {
	if w.failure != nil {
		return engine.Rows{}, w.failure
	}
	return w.c.query(ctx, s, ask, win)
}

// Execute runs a statement in a savepoint, so that a failure changes nothing.
func (w *callTxn) Execute(ctx context.Context, s engine.Statement, ask engine.AuthorizeFunc, win engine.Page) (engine.Rows, error) {
	if w.failure != nil {
		return engine.Rows{}, w.failure
	}
	if err := w.c.decide(ctx, s, ask, true); err != nil {
		return engine.Rows{}, err
	}
	granted := map[engine.Access]bool{}
	writes := false
	for _, a := range w.c.guard.seen {
		granted[a] = true
		if a.Action != perm.Write {
			continue
		}
		writes = true
		if err := w.capturable(ctx, a.Table); err != nil {
			return engine.Rows{}, err
		}
	}
	if err := w.begin(ctx); err != nil {
		return engine.Rows{}, w.file.trouble(err)
	}
	out, err := w.run(ctx, s, win)
	if err == nil && writes {
		out.Affected = lib.Xsqlite3_changes64(w.c.handle.tls, w.c.handle.db)
	}
	if err == nil {
		err = w.take(ctx, granted, ask)
	}
	return out, w.settle(ctx, err)
}

// begin acquires the write lock, once.
func (w *callTxn) begin(ctx context.Context) error {
	if !w.begun {
		if err := w.c.adopt(ctx); err != nil {
			return err
		}
		if err := w.c.own(ctx, "BEGIN IMMEDIATE"); err != nil {
			return err
		}
		w.begun = true
	}
	err := w.c.own(ctx, "SAVEPOINT remit")
	if err != nil {
		w.failure = err
	}
	return err
}

// capturable refuses tables whose rows SQLite does not announce.
func (w *callTxn) capturable(ctx context.Context, name string) error {
	t, err := w.tables.get(ctx, name)
	if err != nil {
		return err
	}
	switch t.kind {
	case "table", "view": // the tables show the changes of a view's triggers
		return nil
	default:
		return fmt.Errorf("%w: changes of %s, a %s table, cannot be reverted; change the table behind it", engine.ErrRefused, name, t.kind)
	}
}

func (w *callTxn) run(ctx context.Context, s engine.Statement, win engine.Page) (engine.Rows, error) {
	w.capture.events, w.capture.err = nil, nil
	before := w.c.handle.changes()
	defer w.c.guard.enforce()()
	w.capture.on = true
	out, err := w.c.run(ctx, s, win)
	w.capture.on = false
	switch {
	case err != nil:
		return out, err
	case w.capture.err != nil:
		return out, w.capture.err
	case int64(len(w.capture.events)) < w.c.handle.changes()-before:
		return out, fmt.Errorf("%w: it changed rows that SQLite did not show", engine.ErrRefused)
	}
	return out, nil
}

// take records the rows that a statement changed. It authorizes accesses that
// the compiler did not report, such as a row that REPLACE removes.
func (w *callTxn) take(ctx context.Context, granted map[engine.Access]bool, ask engine.AuthorizeFunc) error {
	var more []engine.Access
	for _, e := range w.capture.events {
		a := engine.Access{Action: perm.Write, Table: e.table, Statement: e.statement}
		if !granted[a] {
			granted[a], more = true, append(more, a)
		}
	}
	if len(more) > 0 {
		if err := ask(ctx, more); err != nil {
			return err
		}
	}
	for _, e := range w.capture.events {
		if err := w.capturable(ctx, e.table); err != nil {
			return err
		}
		t, err := w.tables.get(ctx, e.table)
		if err != nil {
			return err
		}
		w.history.take(t, e)
	}
	w.capture.events = nil
	return nil
}

// settle ends the savepoint of a statement. If that fails, the whole
// transaction is over: SQLite rolls it back itself after some errors.
func (w *callTxn) settle(ctx context.Context, err error) error {
	ctx = context.WithoutCancel(ctx)
	if err == nil {
		if w.failure = w.c.own(ctx, "RELEASE remit"); w.failure != nil {
			err = w.failure
		}
		return err
	}
	back := w.c.own(ctx, "ROLLBACK TO remit")
	if back == nil {
		back = w.c.own(ctx, "RELEASE remit")
	}
	if back != nil {
		w.failure = fmt.Errorf("the transaction of the call is over since a statement failed: %w", err)
	}
	return err
}

// Prepare reads the current image of each changed row, and signs the
// transaction.
func (w *callTxn) Prepare(ctx context.Context, op string) ([]engine.Change, engine.TxnMarker, error) {
	if w.failure != nil {
		return nil, engine.TxnMarker{}, w.failure
	}
	defer w.tables.close()
	var out []engine.Change
	for _, row := range w.history.order {
		now, err := w.tables.row(ctx, row.ref)
		if err != nil {
			return nil, engine.TxnMarker{}, w.file.trouble(err)
		}
		//mutant:token
		if !now.Same(row.was) {
			out = append(out, engine.Change{Ref: row.ref, Was: row.was, Will: now})
		}
	}
	if len(out) == 0 {
		return nil, engine.TxnMarker{}, nil
	}
	var err error
	if w.mark, err = w.c.sign(ctx, op); err != nil {
		return nil, engine.TxnMarker{}, w.file.trouble(err)
	}
	w.changed = true
	return out, w.mark, nil
}

// Commit makes the changes final. It rolls back a transaction that changed
// nothing.
func (w *callTxn) Commit(ctx context.Context) error {
	if !w.changed {
		w.Rollback()
		return nil
	}
	failed := w.c.own(ctx, "COMMIT")
	w.Rollback()
	if failed == nil {
		return nil
	}
	// A caller that stopped waiting does not know the outcome; the file does.
	switch fate, err := w.file.TxnOutcomeOf(context.WithoutCancel(ctx), w.mark); {
	case err == nil && fate == engine.Committed:
		return nil
	case err == nil && fate == engine.Aborted:
		return fmt.Errorf("the database did not commit: %w", failed)
	default:
		return errors.Join(engine.ErrUndetermined, failed, err)
	}
}

// Rollback closes the connection, which rolls back what is not committed.
func (w *callTxn) Rollback() {
	if w.c == nil {
		return
	}
	w.tables.close()
	if w.begun {
		_ = w.c.own(context.Background(), "ROLLBACK") // closing does the same; after COMMIT it has no effect
	}
	_ = w.c.Close()
	w.failure = errors.New("the transaction of the call has ended")
	w.c = nil
}
