// Package journal is what a journal promises, whatever stores it: batches of
// entries that are there as a whole or not at all, one owner for each
// transaction, content that is durable before a record names it, and a tree over
// all entries whose head shows any change of what was written.
//
// Memory and Shared are journals for tests and for programs that may forget;
// package revert/sqlite is the durable one, and package revert/journaltest holds
// one of your own to all of it.
package journal
