// Package randprog makes random programs that change a folder, for proofs that
// a program's change can be reverted.
//
// A program is a seed and a number of steps. Act runs it: each step reads the
// folder, chooses an operation and its paths, and performs the operation by
// system calls or by an ordinary Unix program. Two equal folders are equal
// afterwards, except for the times that the kernel sets. A step that the system
// refuses is skipped, like a command in a script that continues after an error.
//
// The package shares no code with the rest of the module. A separate checker
// judges its effects on a folder.
package randprog
