// Package postgres stores a journal in a schema of a PostgreSQL database, 15 or
// newer: durable, and open to processes on several nodes at once.
//
//	journal         the tree head, and the key of the locks
//	owners          one row for each opening, with its token
//	flushes         one row for each transaction that appended, with its part of the tree
//	entries         the entries of flushes
//	txns, claims    transactions and their owners; what they hold
//	blobs, chunks   content
//	requests        reverts that one node asks of another
//	schema_version  the migrations that were applied; Open applies those that are missing
//
// # What is durable when
//
// Batches that arrive during a transaction share the next one. If one of them
// is durable, the transaction waits for the disk, as synchronous_commit of the
// server or the role says; off counts as on. Otherwise it does not wait, and a
// crash of the server can lose it: all transactions go to one write-ahead log,
// so it loses the end of the log and nothing before. The opening keeps what may
// be lost, and sends it again when the server is back. A server that runs with
// fsync=off keeps no promise.
//
// If the connection is lost during an append, the opening connects again and
// reads whether the transaction is stored. If it cannot connect in time, the
// append fails with ErrOutcome. A server that comes back without an acknowledged
// transaction makes all appends fail with ErrLost: openings do not continue
// after a gap.
//
// # Who may append
//
// An opening lives while a session of it holds an advisory lock. All its appends
// go through that session. Each of them checks the token of the opening, in the
// statement that stores the entries. A process that finds the lock free ends the
// opening, in the transaction that looked: so an opening that was reported dead
// never appends again, and its appends fail with ErrFenced. An opening whose
// connection was lost, and that no process asked about meanwhile, continues with
// a new session and a higher token.
//
// The server ends a session that is silent for the Lease. So a paused process is
// dead for others after that time, and finds ErrFenced when it wakes up. This
// time decides only how long others wait.
//
// # Requests
//
// A node that takes a request locks its row with SKIP LOCKED, and writes its
// opening into the row. The lock of the opening then tells whether it still
// works, so no clock decides, and the next opening takes what a dead one left.
// An opening that was found dead cannot answer.
//
// # Positions
//
// An append stores entries without positions. A sequencer gives dense positions
// to committed transactions, one step at a time, and moves the tree head in the
// same step. A session lock elects it among the openings that append. Readers
// that find entries without positions do its work first, so what was
// acknowledged is always there. Nothing waits for NOTIFY.
//
// # Rights
//
// Open refuses a role that lacks one of the rights below, from which row
// security can hide rows, or that would run triggers of a lesser role.
//
// Open needs the right to create a schema only if there is none, or if it has
// to apply migrations. Otherwise SELECT, INSERT, UPDATE and DELETE on the tables
// suffice. CollectGarbage lets the owner of the tables write them again, without
// deleted bytes, while no other opening uses the journal; for other roles it
// says that the bytes remain. The write-ahead log, standbys and backups of the
// server keep their copies longer.
//
// # Poolers
//
// Locks belong to a session. Open refuses a pooler in transaction mode, with
// ErrPooler, and so does every append that finds itself in another session.
package postgres
