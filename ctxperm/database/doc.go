// Package database is the handle for rows of SQL databases.
//
// A call authorizes exactly the accesses of its statement: read, write or list
// of db://NAME/TABLE?statement=KIND, where KIND is select, insert, update or
// delete. The database determines these accesses, not the text. They include
// tables behind views, and those that triggers and foreign keys change. The
// handle refuses what the database cannot enforce.
//
// All statements of a call run in one transaction of the database, which
// commits when the call is finished. Before that, the journal gets every
// changed row, before and after. It is durable before COMMIT is sent. A process
// that dies in between leaves either nothing or everything, and the database
// itself records which.
//
// A revert restores each row that still is as the call left it. Any other row
// is a conflict and stays as it is. The triggers of a table do not fire for a
// revert. Numbers from a sequence are not returned to it.
//
// Each kind of database is a separate package, so that programs link only what
// they use: ctxperm/database/sqlite and ctxperm/database/postgres.
package database
