package database

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/host"
)

// callTxn is the open transaction of one call. It is a handle that commits when
// its call is finished.
type callTxn struct {
	driver *Driver
	source *source
	name   string
	call   *callstate.Call
	lock   *host.Lock // serializes operations

	open   engine.Tx // nil: not begun, or ended; guarded by lock
	ended  bool      // guarded by lock
	cancel func()    // cancels the current operation; guarded by driver.mu
}

// callTxnKey identifies a callTxn.
type callTxnKey struct {
	call   *callstate.Call
	source *source
}

// callTxnOf returns the transaction of a call, or creates it.
func (d *Database) callTxnOf(call *callstate.Call, fresh bool) *callTxn {
	d.driver.mu.Lock()
	defer d.driver.mu.Unlock()
	key := callTxnKey{call, d.source}
	w := d.driver.txns[key]
	if w == nil && fresh {
		w = &callTxn{
			driver: d.driver, source: d.source, name: d.name, call: call,
			lock: host.NewLock(call.Config().Recorder.Host(), "database.operation"),
		}
		d.driver.txns[key] = w
	}
	return w
}

// enter begins an operation in the transaction. Abort cancels it.
func (w *callTxn) enter(ctx context.Context) (context.Context, func(), error) {
	if err := w.lock.Lock(ctx); err != nil {
		return nil, nil, err
	}
	if w.ended {
		w.lock.Unlock()
		return nil, nil, ctxperm.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	w.driver.mu.Lock()
	w.cancel = cancel
	w.driver.mu.Unlock()
	return ctx, func() {
		cancel()
		w.lock.Unlock()
	}, nil
}

// begin opens the transaction and joins the call, once.
func (w *callTxn) begin(ctx context.Context) error {
	if w.open != nil {
		return nil
	}
	if err := w.point(ctx, "database.begin"); err != nil {
		return err
	}
	open, err := w.source.engine.Begin(ctx)
	if err != nil {
		return err
	}
	if err = w.call.Join(w, true); err != nil {
		open.Rollback()
		if errors.Is(err, callstate.ErrSecondCommit) {
			err = fmt.Errorf("%w: %w; change the other one by a call of its own", engine.ErrRefused, err)
		}
		return err
	}
	w.open = open
	return nil
}

func (w *callTxn) point(ctx context.Context, id string) error {
	return w.call.Config().Recorder.Host().Point(ctx, id)
}

func (w *callTxn) query(ctx context.Context, s engine.Statement, ask engine.AuthorizeFunc, win engine.Page) (engine.Rows, error) {
	ctx, leave, err := w.enter(ctx)
	if err != nil {
		return engine.Rows{}, err
	}
	defer leave()
	if err := w.point(ctx, "database.query"); err != nil {
		return engine.Rows{}, err
	}
	if w.open == nil {
		return w.source.engine.Query(ctx, s, ask, win)
	}
	return w.open.Query(ctx, s, ask, win)
}

func (w *callTxn) execute(ctx context.Context, s engine.Statement, ask engine.AuthorizeFunc, win engine.Page) (engine.Rows, error) {
	ctx, leave, err := w.enter(ctx)
	if err != nil {
		return engine.Rows{}, err
	}
	defer leave()
	if err := w.begin(ctx); err != nil {
		return engine.Rows{}, err
	}
	if err := w.point(ctx, "database.execute"); err != nil {
		return engine.Rows{}, err
	}
	return w.open.Execute(ctx, s, ask, win)
}

// Prepare records each row before and after, durably. The database has not
// committed yet.
func (w *callTxn) Prepare(ctx context.Context) error {
	ctx, leave, err := w.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := w.point(ctx, "database.prepare"); err != nil {
		return err
	}
	changed, mark, err := w.open.Prepare(ctx, w.call.Config().Key)
	if err != nil || len(changed) == 0 {
		return err
	}
	changes, blobs, err := w.changes(ctx, changed, mark)
	if err != nil {
		return err
	}
	_, err = w.call.Intend(ctx, changes, blobs)
	return err
}

// Finish commits.
func (w *callTxn) Finish(ctx context.Context) error {
	ctx, leave, err := w.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	defer w.end()
	if err := w.point(ctx, "database.commit"); err != nil {
		w.open.Rollback()
		return err
	}
	if err = w.open.Commit(ctx); errors.Is(err, engine.ErrUndetermined) {
		err = fmt.Errorf("database %s: %w: %w", w.name, callstate.ErrOutcomeUnknown, err)
	} else if err != nil {
		err = fmt.Errorf("database %s: %w", w.name, err)
	}
	return err
}

// Abort rolls back. It first cancels a running operation.
func (w *callTxn) Abort(ctx context.Context) {
	w.driver.mu.Lock()
	if w.cancel != nil {
		w.cancel()
	}
	w.driver.mu.Unlock()
	_, leave, err := w.enter(context.WithoutCancel(ctx))
	if err != nil {
		return
	}
	defer leave()
	w.open.Rollback()
	w.end()
}

// end removes the transaction; the caller holds lock.
func (w *callTxn) end() {
	w.ended = true
	w.driver.mu.Lock()
	defer w.driver.mu.Unlock()
	delete(w.driver.txns, callTxnKey{w.call, w.source})
}
