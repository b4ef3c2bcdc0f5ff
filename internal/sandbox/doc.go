// Package sandbox runs one program that sees only what it was granted. It
// collects the program's changes instead of letting them happen.
//
// # How
//
// [Start] starts a shim in new user, mount, process and message namespaces, and
// a network namespace unless the network is granted. The shim is process 1
// there. It builds a file system of what the program may see: the system's
// programs and libraries read-only, a private /tmp, /proc and /dev, and each
// granted root at its own path. A root to read is shown as it is. A root to
// write is shown through an overlay, so that every write lands beside the root
// and never in it.
//
// Then one thread of the shim drops all capabilities, confines itself with
// Landlock and seccomp, and starts the program. The shim's other threads keep
// what they need to read the result. When the program has ended, the shim kills
// all remaining processes, and [Process.Changes] returns the content of the
// overlay.
//
// # Levels
//
// The package tests the features of a machine by using them. [Protections]
// lists the layers of a run. A caller that requires a [Level] refuses a run with
// less before the program starts. No protection is ever dropped without a report.
//
// Without user namespaces no overlay is possible. A run that does not require
// the strict level then has Landlock, the filter of system calls, limits and
// its own folder for temporary files. It sees the host's names, and writes into
// its roots themselves ([Direct]). The report lists what is missing. [Probe]
// returns how a root is shown, and why. The package uses delegated control
// groups: to bound memory on request, and to kill processes without a
// namespace.
//
// # The shim
//
// The shim is a binary that calls [Main] first in main. It is the running one,
// started again, or a [Shim] that the caller names, such as the remit command.
// Without one there is no sandbox, level none, and [Start] returns that error.
// Its code is package shim. A program imports internal/sandbox/first to run it
// before most other packages are initialized, which would otherwise delay each
// start of a sandbox. Programs outside of this module call Main of
// ctxperm/process.
package sandbox
