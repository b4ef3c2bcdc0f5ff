// Package simjournal is a journal in memory. A power failure loses the records
// that no barrier has followed.
//
// A batch is written first and durable later. It becomes durable when a later
// batch has a barrier. Its own barrier is a separate step, which can be
// missing. If a process dies ([Store.Die]), nothing is lost, and its owner is
// dead. If the power fails ([Store.Cut]), any number of the last batches
// without a barrier are gone. The newest goes first, and each goes completely:
// a real store of that kind, such as a write-ahead log with checksums, cuts
// incomplete writes.
//
// Content of more than journal.InlineMax bytes is durable when StoreContent
// returns.
package simjournal
