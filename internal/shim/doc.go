// Package shim is process 1 of a sandbox: it builds what a program sees, starts
// the program without any right that it was not given, and waits until nothing of
// it runs any more. Package sandbox starts it and tells it what to do.
//
// Every sandbox waits for the shim to start, and the shim is a whole program with
// everything that is linked into it. Packages are initialised in the order of their
// import paths, each once all that it imports is. So this package imports nothing
// that needs reflect, unicode, time or os: it comes right after syscall, before
// nearly all else. What syscall lacks of the kernel is in constants_linux.go,
// numbers_linux_*.go and kernel_linux.go.
package shim
