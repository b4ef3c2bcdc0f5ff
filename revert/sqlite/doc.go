// Package sqlite stores a journal in a folder: durable, and open to several
// processes at once.
//
//	journal.head      the promised number of entries, and their tree head
//	journal.db        batches of entries with their tree, small blobs, derived tables (SQLite, WAL)
//	blobs/ab/abcd…    one file for each large blob, named by its digest
//	blobs/new/        large blobs that are being written
//	owners/ID.lock    locked while the opening with that name lives
//
// The folder is private to its user. Open makes it private if it creates it or
// finds it empty, and refuses one that others can read.
//
// # What is durable when
//
// A batch is one SQLite transaction, or part of one: batches that arrive during
// a sync share the next transaction. With Durable set, Append returns after the
// write-ahead log was synced (synchronous=FULL). Without Durable, the
// transaction is committed too: every process sees it, fences use it, and a
// killed process loses nothing. Only the sync is left to the next durable batch
// of any process (synchronous=NORMAL). All transactions go to one write-ahead
// log in order. Each checksum covers everything before it, and SQLite reads the
// log up to the first wrong checksum. So a power failure cuts a suffix of the
// unsynced entries, and never removes a part from the middle.
//
// A large blob is written to blobs/new, synced and renamed, and its folder is
// synced, before StoreContent returns. So a record cannot name content that a
// crash could still remove.
//
// An I/O error of a write or a sync poisons the opening. The kernel may have
// dropped the pages that it could not write, and report success the next time.
// So nothing is repeated: every later Append fails with ErrPoisoned. Opening
// the journal again shows the real content of the disk.
//
// # What is checked
//
// Open checks only the format, so that it is cheap beside a live writer. If no
// other opening has the journal open, it also checks the write-ahead log. Each
// entry is checked against its leaf and the names that its row repeats when it
// is read, each blob against its digest.
//
// The suffix rule has a price: SQLite cannot distinguish damage in the
// write-ahead log from the end that a crash left, and drops the rest without a
// message. Open and Fsck read the log before SQLite does. They detect damage by
// the commits after it, and refuse it. If no commit follows, or the log is
// missing, the head file shows the loss; see head.go.
//
// # Not on network file systems
//
// The write-ahead log and the owner locks need shared memory and locks of one
// machine.
package sqlite
