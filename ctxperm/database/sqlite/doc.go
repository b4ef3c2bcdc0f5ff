// Package sqlite is the SQLite kind of ctxperm/database.
//
// SQLite itself enforces which tables a statement may touch. Its authorizer
// receives each table, column and function that the compiler meets, also inside
// triggers, views and foreign key actions. The pre-update hook observes the
// changes of a statement: each row before and after, for any text of the
// statement.
//
// The first change of a database creates the table remit_ops. It holds an
// identity, and one row for each of the last 10,000 calls, written in the
// transaction of the call. With it, recovery knows whether the call committed.
package sqlite

import (
	"github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// Kind opens locations such as sqlite:/var/lib/app.db. The file must exist.
func Kind() database.Kind { return engine.Wrap[database.Kind](kind{}) }
