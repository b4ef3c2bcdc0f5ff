// Package simjournal is a journal in memory that loses, when the power goes, what no
// barrier has followed.
//
// A batch is written first and durable later: when a batch with a barrier follows it,
// or it has one itself, which is a write of its own and can be missing. Where a
// process dies ([Store.Die]) nothing is lost, and its owner is dead. Where the power
// goes ([Store.Cut]) any number of the last batches without a barrier are gone, the
// newest first and each whole: a store of that kind, such as a write-ahead log with
// checksums, cuts what came in half.
//
// Content of more than journal.InlineMax bytes is durable when it was taken in.
package simjournal
