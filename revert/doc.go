// Package revert keeps what happened and takes it back.
//
// An effect on a resource is an effect.Change: data, never a closure, with the
// version of the resource before and after and whatever the way back needs.
// Changes, calls and transactions are records (package record) in a
// journal.Journal; a Recorder writes them in an order in which every crash leaves
// a journal that still tells what to do; a Reverter takes calls and transactions
// back and settles what a dead process left behind.
//
// The package knows no tool, no policy and no verifier: resources are canonical
// text to it, and what it must ask of them it asks through the small interfaces
// Scheme, Undoer and Prober.
//
// The order of durable writes of one call, "=>" being a barrier:
//
//	Started, Changed(pre, post, inverse) => effect => Done => Verified, seen by others
//
// Started waits for the first Changed when the call can only act through
// handles, so both share a barrier; for any other call that may have effects
// Started has a barrier of its own before the call's code is entered.
package revert
