// Package sqlite lets calls work on SQLite databases through ctxperm/database.
//
// What a statement may touch is enforced by SQLite itself: its authorizer is told
// of each table, column and function that the compiler meets, also inside
// triggers, views and foreign key actions. What a statement changed is what the
// pre-update hook saw: each row before and after, whatever the text was.
//
// The table remit_ops is made in a database that is changed for the first time. It
// holds an identity, and one row for each of the last 10,000 calls, written in the
// transaction of the call: that is how a recovery knows whether it committed.
package sqlite

import "github.com/remit-dev/remit/ctxperm/database"

// Kind opens locations such as sqlite:/var/lib/app.db. The file must exist.
func Kind() database.Kind { return database.NewKind(kind{}) }
