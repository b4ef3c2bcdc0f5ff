// Package crash contains the crash matrix, as a test: transactions of a few
// calls on a simulated disk, a simulated journal and simulated services. Each
// is cut after every write, in each way in which a machine can stop, and again
// while the next process recovers.
//
// The call pipeline, recovery, revert and redo are the real ones; only the
// layers below them are simulated. The requirements are separate from the code:
// a small model of the calls, and the promises of the design.
//
// The package exports nothing.
package crash
