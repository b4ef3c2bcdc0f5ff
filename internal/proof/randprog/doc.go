// Package randprog makes random programs that change a folder, for proofs that
// a change of a program can be reverted.
//
// A program is a seed and a number of steps. Act runs it: each step looks at
// the folder, chooses an operation and the paths that it is about, and carries
// the operation out by system calls or by an ordinary Unix program. Two folders
// that are alike are alike afterwards, but for the times that the kernel sets.
// A step that the system refuses is skipped, as a program in a script that goes
// on after an error does.
//
// The package knows nothing of the rest of the module: what it does to a folder
// is judged by a checker that was written apart from it.
package randprog
