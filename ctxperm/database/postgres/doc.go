// Package postgres is the PostgreSQL kind of ctxperm/database.
//
// Use a separate role. No call can do what the role may not. A superuser is
// refused, because nothing restricts it, and so is a role with rights to a
// journal in the same database. The accesses of a statement are those
// of the server's plan, and of its locks after the statement ran. They include
// functions, views and triggers. The result is shown, and the transaction can
// commit, only if all of them were granted. Queries run in READ ONLY
// transactions.
//
// Row triggers that exist only for the transaction observe the changes of a
// statement. The server's own statistics verify their count. The triggers need
// the TRIGGER privilege on the tables and TEMPORARY on the database. Other
// writers of those tables wait until the call is finished, readers only while
// it commits. A table needs a primary key. One with its own triggers must
// belong to the role, which disables them for a revert.
//
// The server's record of the transaction ID tells whether a call committed.
package postgres

import (
	"github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
)

// Kind opens locations such as postgres://agent@db.example.com/app. Keep a
// password in a file (PGPASSFILE). Records omit one in the location.
func Kind() database.Kind { return engine.Wrap[database.Kind](kind{}) }
