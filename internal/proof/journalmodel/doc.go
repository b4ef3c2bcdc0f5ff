// Package journalmodel contains only tests. They make random batches, queries and
// collections in the journal of package revert/sqlite, in several openings and
// processes, and compare each answer with a model that knows only the contract
// of the journal. Processes are killed, copies are opened as after a crash, and
// what was erased must be in no file after a collection.
package journalmodel
