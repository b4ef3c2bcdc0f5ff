// Package postgres lets calls work on PostgreSQL databases through
// ctxperm/database.
//
// Give it a role of its own. What the role may not do, no call can; a superuser is
// refused, since nothing would hold it. What a statement touches is what the server
// plans for it and has locked once it ran, functions, views and triggers included:
// the result is shown, and the transaction can commit, only once all of that was
// granted. Queries run in READ ONLY transactions.
//
// What a statement changed is what row triggers saw that exist for the transaction
// alone, counted against the server's own statistics of it. They need the TRIGGER
// privilege on the tables and TEMPORARY on the database, and keep other writers of
// those tables waiting until the call is finished, readers only while it commits. A table needs a primary key; one
// with triggers of its own has to belong to the role, which switches them off for an
// undo.
//
// Whether a call committed is what the server says of its transaction id.
package postgres

import "github.com/remit-dev/remit/ctxperm/database"

// Kind opens locations such as postgres://agent@db.example.com/app. A password is
// best kept in a file (PGPASSFILE); one in the location is not written down.
func Kind() database.Kind { return database.NewKind(kind{}) }
