// Package crash holds the crash matrix, as a test: transactions of a few calls over a
// simulated disk, a simulated journal and simulated services, cut at each moment at
// which something was written, in each way in which a machine can go down, and again
// while the next process puts in order what the one before left.
//
// The line of a call, recovery, undo and redo that run here are the real ones; only
// what lies below the seams is simulated. What is required in the end is written down
// apart from them, as a small model of what the calls do and of the promises of the
// design.
//
// There is nothing here to import.
package crash
