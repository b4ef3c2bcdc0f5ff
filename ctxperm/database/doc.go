// Package database is the handle for rows of SQL databases.
//
// A call asks for exactly what its statement touches: read, write or list of
// db://NAME/TABLE?statement=KIND, where KIND is select, insert, update or delete.
// What it touches is what the database says, not what the text looks like: tables
// behind views, and those that triggers and foreign keys change, are asked for as
// well. What the database cannot be held to is refused.
//
// All statements of a call run in one transaction of the database. It commits when
// the call is finished: until then every row that was changed is written to the
// journal, before and after, and that is durable before COMMIT is sent. A process
// that dies in between leaves either nothing or all of it, and the database itself
// keeps what tells which. Undo puts each row back that still is as the call left it;
// any other one is a conflict and stays as it is. The triggers of a table do not
// fire for an undo, and numbers drawn from a sequence are not given back.
//
// Kinds of databases are packages of their own, so that nobody links what they do
// not use: ctxperm/database/sqlite and ctxperm/database/postgres.
package database
