// Package process implements the tools that run programs: process_run, which
// runs one by its argument vector, and shell_run, which gives a script to bash,
// or to sh on a machine without bash. Program makes a tool of a command line.
// They run in the sandbox of package ctxperm/process.
package process
