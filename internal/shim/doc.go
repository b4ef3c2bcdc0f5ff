// Package shim is process 1 of a sandbox: it builds what a program sees, starts
// the program without any right that it was not given, and waits until nothing of
// it runs any more. Package sandbox starts it and tells it what to do.
//
// Every sandbox waits for the shim to start, and the shim is a whole program with
// everything that is linked into it. So this package imports little: a package is
// initialised once all that it imports is, and what imports little comes before
// the rest. And it calls the kernel itself where package os would do more than is
// asked for.
package shim
