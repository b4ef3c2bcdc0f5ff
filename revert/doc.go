// Package revert records effects and reverts them.
//
// An effect on a resource is an effect.Change: data, never a closure, with the
// version of the resource before and after, and its inverse. Changes, calls and
// transactions are records (package record) in a journal.Journal. A Recorder
// writes them in an order in which every crash leaves a journal that still
// determines what to do. A Reverter reverts calls and transactions, and
// recovers what a dead process left in flight.
//
// The package knows no tool, no policy and no verifier. It treats resources as
// canonical text. It uses the small interfaces Scheme, ToolReverter and Prober
// for everything else.
//
// The order of durable writes of one call, "=>" being a barrier:
//
//	Started, Changed(pre, post, inverse) => effect => Done => Verified, seen by others
//
// If the call can act only through handles, Started waits for the first
// Changed, so both share a barrier. For any other call that can have effects,
// Started has its own barrier before the call's code runs.
package revert
