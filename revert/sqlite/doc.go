// Package sqlite keeps a journal in a folder: durable, and open to several
// processes at once.
//
//	journal.head      what was promised: how many entries, and their tree head
//	journal.db        entries with their tree, small blobs, transactions, claims (SQLite, WAL)
//	blobs/ab/abcd…    one file for each large blob, named by its digest
//	blobs/new/        large blobs that are being written
//	owners/ID.lock    locked for as long as the opening with that name lives
//
// The folder is for its user alone: Open makes it so when it creates it or finds
// it empty, and refuses one that others may read.
//
// # What is durable when
//
// A batch is one SQLite transaction, or part of one: batches that arrive while a
// sync is under way share the next. With Durable set, Append returns after the
// write-ahead log was synced (synchronous=FULL). Without, the transaction is
// committed just the same, so that every process sees it, fences decide on it
// and a killed process loses nothing; only the sync is left to the next durable
// batch of any process (synchronous=NORMAL). All transactions go to one
// write-ahead log in order, each checksum covers what stands before it, and
// SQLite reads the log up to the first sum that does not fit. So power loss cuts
// a suffix of what was not synced, and never takes a part from the middle.
//
// Large blobs are written to blobs/new, synced, renamed into place and their
// folder synced, all before Keep returns: a record cannot name content that a
// crash could still take away.
//
// An I/O error of a write or a sync poisons the opening. The kernel may have
// dropped the pages that it could not write and report success the next time,
// so nothing is tried again: every later Append fails with ErrPoisoned, and what
// is really on the disk is learnt by opening the journal again.
//
// # What is checked
//
// Open looks at the format only, so that it is cheap beside a live writer, and at the
// write-ahead log where nobody has the journal open. Each entry is checked against its
// leaf and its index columns when it is read, each blob against its digest. The suffix
// rule above has a price: SQLite cannot tell damage in the write-ahead log from the place
// where a crash cut it, and drops what follows without a word. Open and Fsck read the log
// before SQLite does, tell damage by the commits that stand behind it, and refuse it.
// Where none does, or the log is gone, the head file shows the loss; see head.go.
//
// # Not on network file systems
//
// Write-ahead log and owner locks need shared memory and locks of one machine.
package sqlite
