package database

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/perm"
)

// Execute runs a statement that changes rows, in the transaction of the call. A
// statement that fails changes nothing, and the call can continue. The
// transaction commits when the call is finished. A statement that cannot be
// reverted row by row is refused: DDL, PRAGMA, ATTACH, virtual and temporary
// tables, and others that the kind of database cannot observe.
//
// Calls of one transaction change a database one after the other. A row that
// another open transaction has changed is claimed until that one ends:
// journal.ErrClaimed.
func (d *Database) Execute(ctx context.Context, s Statement, w Page) (Result, error) {
	op, err := d.enter(ctx)
	if err != nil {
		return Result{}, err
	}
	defer op.Leave()
	call := op.Call()
	if call == nil {
		return Result{}, ctxperm.ErrClosed
	}
	all, err := perm.KindDB.Resource(d.name)
	if err != nil {
		return Result{}, err
	}
	release, err := call.Config().Locks.Take(ctx, call.Config().ID, all.String())
	if err != nil {
		return Result{}, err
	}
	defer release()
	rows, err := d.callTxnOf(call, true).execute(ctx, engine.Statement(s), d.ask, w.engine())
	if err != nil {
		return Result{}, fmt.Errorf("database %s: %w", d.name, err)
	}
	return resultOf(rows), nil
}
