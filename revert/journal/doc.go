// Package journal defines the contract of a journal, independent of its
// storage: batches of entries that are stored completely or not at all, one
// owner for each transaction, content that is durable before a record names it,
// and a tree over all entries whose head reveals any change.
//
// Memory and SharedMemory are journals for tests and for programs that need no
// durability. Package revert/sqlite is the durable journal, and package
// revert/journaltest tests an implementation of your own.
package journal
