// Package shim is process 1 of a sandbox. It builds what a program sees, starts
// the program with only its granted rights, and waits until none of its
// processes runs. Package sandbox starts it and sends it a request.
//
// Every sandbox waits for the start of the shim, which is a whole program with
// all its linked packages. Go initializes packages in the order of their import
// paths, each after its imports. So this package imports nothing that needs
// reflect, unicode, time or os. It is initialized right after syscall, before
// nearly all others. Features of the kernel that syscall lacks are in
// constants_linux.go, numbers_linux_*.go and kernel_linux.go.
package shim
